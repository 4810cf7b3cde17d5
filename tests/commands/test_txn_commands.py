"""`millstream txn` on whichever cluster: transactions listed, described, found hanging, and ended."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from kio.schema.errors import ErrorCode

from millstream.cluster.connection import Connection
from support.cli import refused, run, succeed
from support.cluster import (
    Cluster,
    Topic,
    create_topic,
    eventually,
    init_producer,
    list_offset,
    produce,
    unique,
)
from support.raw import RawClient

BROKER, SET, DELETE = 4, 0, 1
VERIFICATION = "transaction.partition.verification.enable"
TRANSACTIONAL = 0x10


def shown(cluster: Cluster, *arguments: str, **options: Any) -> str:
    return succeed("txn", *arguments, "--bootstrap", cluster.bootstrap_servers, **options).stdout


def json(cluster: Cluster, *arguments: str) -> Any:
    return succeed("txn", *arguments, "--bootstrap", cluster.bootstrap_servers, "--json").json


@pytest.fixture
def topic(raw: RawClient) -> Topic:
    return create_topic(raw, partitions=2)


def begin(cluster: Cluster, transactional_id: str, topic: Topic) -> Producer:
    """A producer in the middle of a transaction."""
    producer = Connection(cluster.bootstrap_servers).producer({"transactional.id": transactional_id})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic.name, b"maybe", partition=1)
    producer.flush()
    return producer


def test_list_and_describe(cluster: Cluster, topic: Topic) -> None:
    name = unique("txn")
    producer = begin(cluster, name, topic)
    row = next(row for row in json(cluster, "list") if row["transactional_id"] == name)
    assert (row["state"], row["coordinator"], row["partitions"]) == ("Ongoing", 1, [f"{topic.name}-1"])
    assert row["age_ms"] >= 0
    found = json(cluster, "describe", name)
    assert found["producer_id"] == row["producer_id"]
    (partition,) = found["partitions"]
    assert (partition["partition"], partition["start_offset"]) == (f"{topic.name}-1", 0)
    text = shown(cluster, "describe", name)
    assert "state             Ongoing" in text
    assert f"{topic.name}-1" in text
    assert any(line.split()[:2] == [name, "Ongoing"] for line in shown(cluster, "list", columns=120).splitlines())
    producer.commit_transaction()

    def committed() -> bool:
        return bool(json(cluster, "describe", name)["state"] == "CompleteCommit")

    eventually(committed)
    after = json(cluster, "describe", name)
    assert (after["partitions"], after["age_ms"], after["started_ms"]) == ([], None, None)


def test_list_filters(cluster: Cluster, topic: Topic) -> None:
    open_one, empty_one = unique("open"), unique("empty")
    producer = begin(cluster, open_one, topic)
    idle = Connection(cluster.bootstrap_servers).producer({"transactional.id": empty_one})
    idle.init_transactions(30)

    def names(*arguments: str) -> set[str]:
        return {row["transactional_id"] for row in json(cluster, "list", *arguments)} & {open_one, empty_one}

    assert names() == {open_one, empty_one}
    assert names("--state", "ongoing") == {open_one}
    assert names("--state", "Empty", "--state", "Ongoing") == {open_one, empty_one}
    assert names("--older-than", "0s") == {open_one}
    assert names("--older-than", "1h") == set()
    assert shown(cluster, "list", "--older-than", "99d") == "no transactions\n"
    producer.abort_transaction()


def test_abort_by_id_plans_first_and_fences_the_producer(cluster: Cluster, topic: Topic, raw: RawClient) -> None:
    name = unique("txn")
    producer = begin(cluster, name, topic)
    plan = shown(cluster, "abort", name)
    assert f"{name} is Ongoing for " in plan
    assert f"in {topic.name}-1. --execute aborts it" in plan
    assert json(cluster, "abort", name)["aborted"] is False
    assert json(cluster, "describe", name)["state"] == "Ongoing"
    assert shown(cluster, "abort", name, "--execute").startswith(f"{name} is aborted")
    assert json(cluster, "describe", name)["partitions"] == []
    assert list_offset(raw, topic, -1, partition=1, isolation_level=1).offset == 2
    with pytest.raises(KafkaException):
        producer.commit_transaction(30)
    assert shown(cluster, "abort", name).startswith(f"nothing to do: {name} has no open transaction")
    assert json(cluster, "abort", name, "--execute")["aborted"] is False


@pytest.fixture
def unverified(raw: RawClient) -> Iterator[None]:
    """The broker takes transactional records without asking the coordinator, as brokers before 3.6 did."""

    def set_to(value: str | None) -> None:
        operation = DELETE if value is None else SET
        config = {"name": VERIFICATION, "config_operation": operation, "value": value}
        resource = {"resource_type": BROKER, "resource_name": "", "configs": [config]}
        (answer,) = raw.call("incremental_alter_configs", 1, resources=[resource], validate_only=False).responses
        assert answer.error_code == ErrorCode.none

    set_to("false")
    yield
    set_to(None)


def hang(raw: RawClient, topic: Topic) -> int:
    """A transaction in partition 0 that no coordinator knows; returns the producer id."""
    found = init_producer(raw, unique("hanging"))

    def written() -> bool:
        answer = produce(
            raw, topic, b"for ever", version=11, attributes=TRANSACTIONAL, producer_id=found.producer_id,
            producer_epoch=found.producer_epoch, base_sequence=0, transactional_id="hanging",
        )  # fmt: skip
        return bool(answer.error_code == ErrorCode.none)

    eventually(written)
    return int(found.producer_id)


@pytest.mark.usefixtures("unverified")
def test_a_hanging_transaction_is_found_and_aborted(cluster: Cluster, topic: Topic, raw: RawClient) -> None:
    producer_id = hang(raw, topic)
    here = ("--topic", topic.name)
    assert shown(cluster, "hanging", *here) == "none hangs\n"
    found = run("txn", "hanging", *here, "--older-than", "0s", "--bootstrap", cluster.bootstrap_servers, "--json")
    assert found.exit_code == 1
    (row,) = found.json
    assert (row["topic"], row["partition"], row["producer_id"], row["start_offset"]) == (topic.name, 0, producer_id, 0)
    told = run("txn", "hanging", *here, "--older-than", "0s", "--bootstrap", cluster.bootstrap_servers).stdout
    assert f"txn abort --topic {topic.name} --partition 0 --producer-id {producer_id} --execute" in told
    assert list_offset(raw, topic, -1, isolation_level=1).offset == 0

    which = ("abort", *here, "--partition", "0", "--producer-id", str(producer_id))
    assert "began at offset 0" in shown(cluster, *which)
    assert json(cluster, *which)["aborted"] is False
    assert shown(cluster, *which, "--execute") == (
        f"the transaction of producer {producer_id} in {topic.name}-0 is aborted\n"
    )
    assert eventually(lambda: list_offset(raw, topic, -1, isolation_level=1).offset == 2)
    assert shown(cluster, "hanging", *here, "--older-than", "0s") == "none hangs\n"
    again = refused(4, "txn", *which, "--bootstrap", cluster.bootstrap_servers)
    assert f"{producer_id} has no open transaction in {topic.name}-0" in again


def test_a_transaction_with_a_coordinator_does_not_hang(cluster: Cluster, topic: Topic) -> None:
    producer = begin(cluster, unique("txn"), topic)
    assert shown(cluster, "hanging", "--topic", topic.name, "--older-than", "0ms") == "none hangs\n"
    producer.abort_transaction()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("list", "--state", "Sleeping"), 2, "--state: 'Sleeping' is not a state of a transaction; they are: Empty, "),
        (
            ("list", "--older-than", "soon"),
            2,
            "--older-than: 'soon' is not a time span; write 500ms, 90s, 15m, 2h or 1d",
        ),
        (("hanging", "--older-than", "-1s"), 2, "--older-than: '-1s' is not a time span"),
        (("hanging", "--topic", "no-such-topic"), 4, "there is no topic 'no-such-topic'"),
        (("describe", "nobody-has-this-id"), 4, "there is no transactional id 'nobody-has-this-id'"),
        (("describe",), 2, "Missing argument"),
        (("abort",), 2, "give either a transactional id, or all of --topic, --partition and --producer-id"),
        (("abort", "x", "--topic", "t"), 2, "give either a transactional id"),
        (("abort", "--topic", "t", "--partition", "0"), 2, "give either a transactional id"),
        (("abort", "--topic", "t", "--partition", "-1", "--producer-id", "1"), 2, "--partition"),
        (("abort", "--topic", "t", "--partition", "0", "--producer-id", "x"), 2, "--producer-id"),
        (("abort", "nobody-has-this-id", "--execute"), 4, "there is no transactional id"),
        (("abort", "--topic", "no-such-topic", "--partition", "0", "--producer-id", "1"), 4, "there is no topic"),
    ],
)
def test_bad_input(cluster: Cluster, arguments: tuple[str, ...], code: int, words: str) -> None:
    assert words in refused(code, "txn", *arguments, "--bootstrap", cluster.bootstrap_servers)


def test_a_partition_that_is_not_there(cluster: Cluster, topic: Topic) -> None:
    which = ("abort", "--topic", topic.name, "--partition", "9", "--producer-id", "1")
    assert f"{topic.name} has no partition 9" in refused(4, "txn", *which, "--bootstrap", cluster.bootstrap_servers)


def test_nobody_answers() -> None:
    for command in (("list",), ("hanging",), ("describe", "x"), ("abort", "x")):
        assert "no broker answers" in refused(3, "txn", *command, "--bootstrap", "127.0.0.1:1")
