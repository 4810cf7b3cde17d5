"""What sinks are called, and that every sink that can be described can be written."""

from millstream.pipelines.description.pipeline import Pipeline
from millstream.pipelines.description.sinks import (
    SINKS,
    CassandraSink,
    ConsoleSink,
    DatabaseSink,
    FilesSink,
    TableSink,
    TopicSink,
)
from millstream.pipelines.description.sources import GeneratorSource
from millstream.pipelines.spark.sinks import READ_BACK, WRITERS, sink_name
from millstream.pipelines.spark.sinks.names import owner_of

PIPELINE = Pipeline(
    name="orders",
    source=GeneratorSource(generate={}),
    sinks=(
        TopicSink(topic="fraudip"),
        TableSink(table="warehouse.fraud"),
        DatabaseSink(database="sqlite:///a.db", table="orders"),
        DatabaseSink(database="sqlite:///b.db", table="orders"),
        CassandraSink(cassandra="h:1", keyspace="shop", table="orders", key=("id",)),
        FilesSink(files="hdfs://host/lake/orders/"),
        ConsoleSink(),
        ConsoleSink(),
    ),
)


def test_names_are_readable_and_each_has_its_own() -> None:
    names = [sink_name(PIPELINE, index) for index in range(len(PIPELINE.sinks))]
    assert names == [
        "topic-fraudip",
        "table-warehouse.fraud",
        "database-orders",
        "database-orders-3",
        "cassandra-shop.orders",
        "files-orders",
        "console",
        "console-7",
    ]


def test_a_sink_added_at_the_end_changes_no_name() -> None:
    more = PIPELINE.model_copy(update={"sinks": (*PIPELINE.sinks, ConsoleSink())})
    assert [sink_name(more, i) for i in range(8)] == [sink_name(PIPELINE, i) for i in range(8)]


def test_owners_differ_between_sinks_that_look_the_same() -> None:
    owners = {owner_of(PIPELINE, sink) for sink in PIPELINE.sinks}
    assert len(owners) == len(PIPELINE.sinks)


def test_every_sink_has_a_writer_and_all_but_the_console_can_be_read_back() -> None:
    assert set(WRITERS) == set(SINKS.values())
    assert set(READ_BACK) == set(SINKS.values()) - {ConsoleSink}
