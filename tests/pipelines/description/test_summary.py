"""A pipeline in a few lines."""

from typing import Any

from millstream.pipelines import (
    AggregateStep,
    ConsoleSink,
    DatabaseSink,
    JoinStep,
    Pipeline,
    SelectStep,
    SqlStep,
    Table,
    TopicSource,
    describe,
)


def test_all_parts_in_order() -> None:
    def local(stream: Any) -> Any:
        return stream

    pipeline = Pipeline(
        name="sums",
        description="Sums per customer",
        sources={"orders": TopicSource(topic="orders"), "views": TopicSource(topic=["a", "b"], start={"a": {0: 1}})},
        tables={"customers": Table(topic="customers")},
        steps=[
            JoinStep(with_="customers", on=["id"]),
            SqlStep(sql="SELECT *\n  FROM stream"),
            SelectStep(columns=["a", "b"]),
            local,
            AggregateStep(by=["id"], compute={"total": "sum(amount)"}),
        ],
        sinks=[DatabaseSink(database="mysql://u:hunter2@h/shop", table="sums", key=["id"]), ConsoleSink()],
        mode="micro-batch",
        every="90s",
    )
    assert describe(pipeline) == [
        "pipeline sums: Sums per customer",
        "  source      orders: topic: orders",
        "  source      views: topic: [a, b], start: {a: {0: 1}}",
        "  table       customers: topic: customers",
        "  step        join: with: customers, on: [id]",
        "  step        sql: SELECT * FROM stream",
        "  step        select: a, b",
        "  step        python: test_all_parts_in_order.<locals>.local",
        "  step        aggregate: by: id, compute: {total: sum(amount)}",
        "  sink        database: 'mysql://u:***@h/shop', table: sums, key: id",
        "  sink        console: true",
        "  mode        micro-batch, a batch at most every 1m30s",
        "  bad records go to the topic sums-dead-letters",
        "  progress    is committed to the consumer group millstream-sums",
    ]


def test_long_lines_are_cut() -> None:
    sql = "SELECT " + ", ".join(f"column_{index}" for index in range(50)) + " FROM stream"
    pipeline = Pipeline(
        name="p", source=TopicSource(topic="t"), steps=[SqlStep(sql=sql)], sinks=[ConsoleSink()], on_error="fail"
    )
    lines = describe(pipeline)
    assert lines[2].startswith("  step        sql: SELECT column_0, column_1")
    assert lines[2].endswith("…")
    assert max(map(len, lines)) < 130
    assert "  bad records stop the pipeline" in lines
