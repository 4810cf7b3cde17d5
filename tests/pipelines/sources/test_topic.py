"""Topics as a source: where reading starts and ends, what is picked up on the way, what is refused."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row

from millstream.cluster.connection import Connection
from millstream.cluster.positions import Position
from millstream.cluster.topics import add_partitions, create_topic, plan_truncate, truncate
from millstream.pipelines.description.sinks import TopicSink
from millstream.pipelines.description.sources import TopicSource
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.sources.topic import TopicReader
from millstream.pipelines.spark.values import encode
from support.cluster import unique

Read = Callable[[DataFrame], list[Row]]
NOON = int(datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp() * 1000)


def topic(connection: Connection, partitions: int = 1, name: str | None = None) -> str:
    name = name or unique("topic")
    # Records of these tests are old, and are to stay.
    create_topic(connection, name, partitions=partitions, configs={"retention.ms": "-1"})
    return name


def produce(connection: Connection, topic: str, *values: Any, partition: int = 0, **more: Any) -> None:
    """Values as JSON, in this order; bytes, text and nulls as they are."""
    producer = Producer({"bootstrap.servers": connection.bootstrap})
    for value in values:
        plain = value if isinstance(value, bytes | str | None) else json.dumps(value)
        producer.produce(topic, plain, partition=partition, **more)
    assert producer.flush(10) == 0


def reader(context: Context, **fields: Any) -> TopicReader:
    return TopicReader(TopicSource(**fields), "stream", context)


def texts(context: Context, read: Read, **fields: Any) -> list[str]:
    source = reader(context, value="text", **fields)
    return sorted(row["value"] for row in read(source.rows(source.raw_stream())))


def test_rows_carry_what_they_came_from(context: Context, connection: Connection, read: Read) -> None:
    name = topic(connection)
    produce(connection, name, {"id": 1}, "no json", key=b"k", headers=[("h", b"x")], timestamp=NOON)
    source = reader(context, topic=name, schema="id bigint")
    assert source.can_fail
    rows = sorted(read(source.rows(source.raw_stream())), key=lambda row: int(row["_origin"]["offset"]))
    assert [(row["id"], row["_error"] and row["_error"]["error"]) for row in rows] == [(1, None), (None, "not-json")]
    origin = rows[1]["_origin"]
    assert (origin["topic"], origin["partition"], origin["offset"], origin["key"]) == (name, 0, 1, b"k")
    assert (origin["value"], origin["headers"]) == (b"no json", [Row(key="h", value=b"x")])
    assert not reader(context, topic=name, value="raw").can_fail


def test_a_stream_goes_on_where_it_was_and_finds_new_partitions(
    context: Context, connection: Connection, read: Read
) -> None:
    name = topic(connection)
    produce(connection, name, "a", "b")
    assert texts(context, read, topic=name) == ["a", "b"]
    add_partitions(connection, name, to=2)
    produce(connection, name, "c")
    produce(connection, name, "d", partition=1)
    assert texts(context, read, topic=name) == ["c", "d"]


def test_several_topics_and_patterns(context: Context, connection: Connection, read: Read) -> None:
    prefix = unique("shop")
    first, second, other = (topic(connection, name=f"{prefix}{name}") for name in (".a", ".b", "-other"))
    for name in (first, second, other):
        produce(connection, name, name)
    pattern = re.escape(prefix) + r"\..*"
    assert texts(context, read, pattern=pattern) == [first, second]
    third = topic(connection, name=f"{prefix}.c")
    produce(connection, third, third)
    assert texts(context, read, pattern=pattern) == [third]


def test_a_list_of_topics(context: Context, connection: Connection, read: Read) -> None:
    names = sorted(topic(connection) for _ in range(2))
    for name in names:
        produce(connection, name, name)
    assert texts(context, read, topic=names) == names


def test_start_at_the_end_reads_only_what_comes_later(context: Context, connection: Connection, read: Read) -> None:
    name = topic(connection)
    produce(connection, name, "old")
    assert texts(context, read, topic=name, start="latest") == []
    produce(connection, name, "new")
    assert texts(context, read, topic=name, start="latest") == ["new"]


def test_start_and_end_by_time(context: Context, connection: Connection, read: Read) -> None:
    name = topic(connection, partitions=2)
    for hour in range(4):
        produce(connection, name, f"hour {hour}", timestamp=NOON + hour * 3_600_000)
    found = texts(context, read, topic=name, start="2026-01-31T13:00:00Z", end="2026-01-31T15:00:00Z")
    assert found == ["hour 1", "hour 2"]


def test_start_and_end_by_offset(context: Context, connection: Connection, read: Read) -> None:
    name = topic(connection, partitions=3)
    for partition in range(3):
        produce(connection, name, *(f"{partition}/{offset}" for offset in range(4)), partition=partition)
    start, end = {name: {0: 2, 1: 3}}, {name: {0: 3, 2: 1}}
    source = reader(context, topic=name, value="text", start=start, end=end)
    assert source.end_offsets() == {name: {0: 3, 1: 4, 2: 1}}
    assert sorted(row["value"] for row in read(source.rows(source.raw_stream()))) == ["0/2", "1/3", "2/0"]
    assert source.finished(json.dumps({name: {"0": 4, "1": 4, "2": 4}}))
    assert not source.finished(json.dumps({name: {"0": 4, "1": 3, "2": 4}}))
    assert not reader(context, topic=name, value="text").finished(json.dumps({name: {"0": 4}}))


def test_the_end_of_a_topic_is_where_it_was_at_the_start(context: Context, connection: Connection, read: Read) -> None:
    name = topic(connection, partitions=2)
    produce(connection, name, "a", "b")
    source = reader(context, topic=name, value="text", end="latest")
    produce(connection, name, "c")
    assert [row["value"] for row in read(source.rows(source.raw_stream()))] == ["a", "b"]
    assert source.finished(json.dumps({name: {"0": 2, "1": 0}}))
    assert not source.finished(json.dumps({name: {"0": 1, "1": 0}}))


@pytest.mark.parametrize(
    ("position", "message"),
    [({"other": {0: 1}}, "names the topic other"), ({"TOPIC": {7: 1}}, "names partition 7 of .*, which has 0 to 0")],
)
def test_positions_that_do_not_exist(
    context: Context, connection: Connection, position: dict[str, dict[int, int]], message: str
) -> None:
    name = topic(connection)
    given = {name if found == "TOPIC" else found: partitions for found, partitions in position.items()}
    with pytest.raises(PipelineError, match="`end` " + message):
        reader(context, topic=name, value="text", end=given)
    with pytest.raises(PipelineError, match="`start` " + message):
        reader(context, topic=name, value="text", start=given).raw_stream()


def test_a_batch_again(context: Context, connection: Connection) -> None:
    name = topic(connection, partitions=2)
    produce(connection, name, "a", "b", "c")
    produce(connection, name, "d", partition=1)
    source = reader(context, topic=name, value="text")
    # Partition 1 was not there when the batch began.
    raw = source.raw_batch(json.dumps({name: {"0": 1}}), json.dumps({name: {"0": 2, "1": 1}}))
    assert not raw.isStreaming
    assert sorted(row["value"] for row in source.rows(raw).collect()) == ["b", "d"]


def test_a_limit_makes_several_batches(context: Context, connection: Connection, read: Read) -> None:
    name = topic(connection)
    produce(connection, name, *map(str, range(10)))
    sizes: list[int] = []
    stream = reader(context, topic=name, value="text").raw_stream(4)
    query = (
        stream.writeStream.foreachBatch(lambda batch, _: sizes.append(batch.count())).trigger(availableNow=True).start()
    )
    query.awaitTermination()
    assert sizes == [4, 4, 2]


def test_the_schema_is_inferred_from_the_first_and_last_records_and_kept(
    context: Context, connection: Connection
) -> None:
    name = topic(connection, partitions=2)
    produce(connection, name, None, {"old": 1}, *({"id": number} for number in range(1200)), {"new": "x"})
    columns = ["id", "new", "old", "_origin", "_error"]
    source = reader(context, topic=name)
    assert source.rows(source.raw_stream()).columns == columns
    produce(connection, name, {"later": 1})
    again = reader(context, topic=name)
    assert again.rows(again.raw_stream()).columns == columns


def test_an_empty_topic_has_nothing_to_infer_from(context: Context, connection: Connection) -> None:
    name = topic(connection)
    with pytest.raises(PipelineError, match=f"{name} has no records to infer a schema from: give `schema`"):
        reader(context, topic=name)
    produce(connection, name, None)
    with pytest.raises(PipelineError, match="give `schema`"):
        reader(context, topic=name)


def test_all_of_it_runs_in_real_time(context: Context, connection: Connection, tmp_path: Path) -> None:
    """Spark refuses what it cannot run in real-time mode when the query starts."""
    name, out = topic(connection), topic(connection)
    (tmp_path / "schema.json").write_text(json.dumps({"properties": {"id": {"type": "integer", "minimum": 1}}}))
    source = reader(context, topic=name, value="json-schema", schema=str(tmp_path / "schema.json"), key="text")
    rows = source.rows(source.raw_stream()).where("_error IS NULL")
    query = (
        encode(rows, TopicSink(topic=out, key="key", headers={"h": "id"}))
        .writeStream.format("kafka")
        .options(**context.kafka_options(), topic=out, checkpointLocation=str(tmp_path / "real-time"))
        .outputMode("update")
        .trigger(realTime="5 seconds")  # type: ignore[call-overload]  # PySpark's own stubs do not have it
        .start()
    )
    consumer = Consumer({"bootstrap.servers": connection.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([out])
        produce(connection, name, {"id": 0}, {"id": 1}, "no json", {"id": 2}, key=b"k")
        found = consumer.consume(2, timeout=30)
        assert [(record.key(), record.value(), record.headers()) for record in found] == [
            (b"k", b'{"key":"k","id":1}', [("h", b"1")]), (b"k", b'{"key":"k","id":2}', [("h", b"2")]),
        ]  # fmt: skip
    finally:
        consumer.close()
        query.stop()


def test_a_topic_that_is_not_there(context: Context) -> None:
    with pytest.raises(PipelineError, match="there is no topic nowhere"):
        reader(context, topic="nowhere", value="text")


def test_records_that_are_gone_stop_the_query(context: Context, connection: Connection, read: Read) -> None:
    name = topic(connection)
    produce(connection, name, "a", "b")
    assert texts(context, read, topic=name) == ["a", "b"]
    produce(connection, name, "c", "d")
    truncate(connection, name, plan_truncate(connection, name, Position("offset", 3)))
    with pytest.raises(StreamingQueryException, match=r"DATA_LOSS|OffsetOutOfRange"):
        texts(context, read, topic=name)
