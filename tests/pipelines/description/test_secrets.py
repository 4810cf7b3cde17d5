"""Passwords are not printed, wherever they stand."""

import pytest

from millstream.pipelines import (
    CassandraSink,
    DatabaseSink,
    DatabaseSource,
    LookupStep,
    Pipeline,
    Table,
    TopicSink,
    TopicSource,
    describe,
)
from millstream.pipelines.description.secrets import without_secrets

EVERYWHERE = Pipeline(
    name="secrets",
    sources={
        "rows": DatabaseSource(database="mysql://u:hunter2@h/db", table="t", incrementing="id"),
        "records": TopicSource(topic="t", options={"kafka.sasl.jaas.config": "user=u password=hunter2"}),
    },
    tables={"customers": Table(database="postgresql://u:hunter2@h/db?password=hunter2", table="t")},
    steps=[LookupStep(name="l", on="ip", type="redis", url="redis://:hunter2@h:6379/0", columns="a int")],
    sinks=[
        CassandraSink(cassandra="h:9042", keyspace="k", table="t", key="id", user="u", password="hunter2"),
        DatabaseSink(database="mysql://u:hunter2@h/db", table="t"),
        TopicSink(topic="t", options={"kafka.ssl.key.password": "hunter2"}),
    ],
    spark={"spark.hadoop.fs.s3a.secret.key": "hunter2"},
)


@pytest.mark.parametrize("text", [repr(EVERYWHERE), str(EVERYWHERE), "\n".join(describe(EVERYWHERE))])
def test_none_of_them(text: str) -> None:
    assert "hunter2" not in text
    assert "***" in text
    assert "mysql://u:***@h/db" in text


def test_they_are_there() -> None:
    assert EVERYWHERE.to_yaml().count("hunter2") == 9


def test_pydantic_does_not_print_them_either() -> None:
    with pytest.raises(ValueError, match="password") as caught:
        CassandraSink(cassandra="h", keyspace="k", table="t", key="id", password=["hunter2"])  # type: ignore[arg-type]
    assert "hunter2" not in str(caught.value)


def test_what_is_no_secret_stays() -> None:
    plain = {"url": "https://example.com/a:b", "user": "u", "sql": "SELECT a::int FROM b", "n": 5, "list": ["x"]}
    assert without_secrets(plain) == plain
    assert without_secrets({"password": ""}) == {"password": ""}
