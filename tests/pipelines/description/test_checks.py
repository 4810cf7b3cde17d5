"""What is wrong with a pipeline as a whole."""

from pathlib import Path
from typing import Any

import pytest

from millstream.pipelines import (
    ConsoleSink,
    FilterStep,
    JoinStep,
    Pipeline,
    PipelineErrors,
    Step,
    Table,
    TopicSink,
    TopicSource,
    check,
)
from millstream.pipelines.description.statements import table_mistakes
from support.descriptions import mistakes, read_text

KNOWN = ["stream", "customers"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM stream",
        "SELECT * FROM STREAM s JOIN Customers USING (id)",
        "WITH a AS (SELECT * FROM stream) SELECT * FROM a",
        "SELECT * FROM stream, LATERAL explode(x) t",
        "SELECT * FROM stream LATERAL VIEW explode(items) i AS item",
        "SELECT * FROM (SELECT 1 AS a) x JOIN stream USING (a)",
        "SELECT * FROM warehouse.orders JOIN stream USING (id)",
        "SELECT * FROM spark_catalog.warehouse.orders",
        "SELECT * FROM parquet.`/data/orders`",
        "SELECT * FROM range(10)",
        "SELECT * FROM VALUES (1, 2) AS t(a, b)",
        "SELECT a FROM stream UNION ALL SELECT a FROM customers",
        "SELECT * FROM stream WHERE id IN (SELECT id FROM customers)",
        "FROM stream |> WHERE a > 1",
        "SELECT * FROM stream;",
        "this is for Spark to say !!",
        "SHOW TABLES",
    ],
)
def test_statements_with_nothing_wrong_as_far_as_can_be_seen(sql: str) -> None:
    assert list(table_mistakes(sql, KNOWN)) == []


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT *\nFROM streem\nJOIN custs USING (id)", [(2, "streem", "stream"), (3, "custs", "customers")]),
        ("SELECT * FROM stream WHERE id IN (SELECT id FROM customer)", [(1, "customer", "customers")]),
        ("WITH a AS (SELECT * FROM b) SELECT * FROM a", [(1, "b", None)]),
    ],
)
def test_tables_that_are_not_there(sql: str, found: list[tuple[int, str, str | None]]) -> None:
    expected = [
        (
            line,
            f"there is no source or table `{name}`" + (f"; did you mean `{near}`?" if near else "; there are stream,"),
        )
        for line, name, near in found
    ]
    assert [
        (line, text[: len(wanted)])
        for (line, text), (_, wanted) in zip(table_mistakes(sql, KNOWN), expected, strict=True)
    ] == expected


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO a SELECT 1",
        "DROP TABLE a",
        "CREATE TABLE a AS SELECT 1",
        "DELETE FROM a",
        "MERGE INTO a USING b ON a.x = b.x WHEN MATCHED THEN DELETE",
    ],
)
def test_a_step_only_reads(sql: str) -> None:
    ((line, text),) = table_mistakes(sql, KNOWN)
    assert line == 1
    assert text.startswith("a step is a SELECT; ")


def test_the_line_inside_the_file(tmp_path: Path) -> None:
    (found,) = mistakes(
        tmp_path,
        """\
        pipeline: p
        source: {topic: t}
        steps:
          - filter: a
          - sql: |
              SELECT *
              FROM nowhere
        sinks: [console: true]
        """,
    )
    assert found.startswith("7: steps[1].sql: there is no source or table `nowhere`")


@pytest.mark.parametrize(
    "sql", [">\n              SELECT *\n              FROM nowhere", '"SELECT *\n              FROM nowhere"']
)
def test_folded_texts_have_no_lines(tmp_path: Path, sql: str) -> None:
    text = f"pipeline: p\nsource: {{topic: t}}\nsteps:\n  - sql: {sql}\nsinks: [console: true]\n"
    (found,) = mistakes(tmp_path, text)
    assert found.partition(":")[0] in ("4", "5")


SEVERAL = """\
pipeline: p
sources:
  clicks: {topic: clicks}
  views: {topic: views}
tables:
  customers: {topic: customers}
steps:
  - STEP
sinks: [console: true]
"""


@pytest.mark.parametrize(
    "step",
    [
        "join: {with: views, on: id}",
        "join: {with: customers, on: id}",
        "sql: SELECT * FROM clicks JOIN views USING (id)",
    ],
)
def test_names_that_lead_somewhere(tmp_path: Path, step: str) -> None:
    (pipeline,) = read_text(tmp_path, SEVERAL.replace("STEP", step))
    assert list(pipeline.named_sources) == ["clicks", "views"]


@pytest.mark.parametrize(
    ("step", "wrong"),
    [
        ("join: {with: clicks, on: id}", "8: steps[0].join.with: `clicks` is the stream itself: name another"),
        (
            "join: {with: view, on: id}",
            "8: steps[0].join.with: there is no source or table `view`; did you mean `views`?",
        ),
        (
            "join: {with: xyz, on: id}",
            "8: steps[0].join.with: there is no source or table `xyz`; there are views, customers",
        ),
    ],
)
def test_names_that_lead_nowhere(tmp_path: Path, step: str, wrong: str) -> None:
    (found,) = mistakes(tmp_path, SEVERAL.replace("STEP", step))
    assert found.startswith(wrong)


def test_names_that_are_taken(tmp_path: Path) -> None:
    text = (
        SEVERAL.replace("STEP", "filter: a")
        .replace("customers:", "views:", 1)
        .replace("  views: {topic: v", "  stream: {topic: v")
    )
    assert mistakes(tmp_path, text) == [
        "4: sources.stream: `stream` are the rows of the first source: call this one otherwise"
    ]
    text = SEVERAL.replace("STEP", "filter: a").replace("customers:", "views:", 1)
    assert mistakes(tmp_path, text) == [
        "6: tables.views: `views` is already the name of a source: call the table otherwise"
    ]


@pytest.mark.parametrize(
    ("source", "steps"),
    [
        ("{topic: t, watermark: 'time, 5m'}", "deduplicate: {by: id, within: 5m}"),
        ("{topic: t}", "watermark: time, 5m\n  - deduplicate: {by: id, within: 5m}"),
        ("{topic: t}", "python: json:loads\n  - deduplicate: {by: id, within: 5m}"),
        ("{topic: t}", "deduplicate: {by: id}"),
        (
            "{topic: t}",
            "sql: SELECT * FROM stream WATERMARK t DELAY OF INTERVAL 5 MINUTES\n  - deduplicate: {by: id, within: 5m}",
        ),
        ("{topic: t}", "watermark: time, 5m\n  - aggregate: {compute: {n: count(*)}}\noutput: append"),
        ("{topic: t}", "aggregate: {compute: {n: count(*)}}\noutput: update"),
    ],
)
def test_a_watermark_where_it_is_needed(tmp_path: Path, source: str, steps: str) -> None:
    assert read_text(tmp_path, f"pipeline: p\nsource: {source}\nsinks: [console: true]\nsteps:\n  - {steps}\n")


def test_no_watermark_where_it_is_needed(tmp_path: Path) -> None:
    text = "pipeline: p\nsource: {topic: t}\nsinks: [console: true]\noutput: append\nsteps:\n"
    found = mistakes(tmp_path, f"{text}  - aggregate: {{compute: {{n: count(*)}}}}\n  - watermark: time, 5m\n")
    assert found == [
        "4: output: `append` writes results of an aggregation when they are final: it needs a watermark before it"
    ]


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ("source: {files: in}\nsinks: [topic: t]", "it reads topics only, not files"),
        (
            "source: {database: 'mysql://h/d', table: t, incrementing: id}\nsinks: [topic: t]",
            "it reads topics only, not a database",
        ),
        ("source: {topic: t, end: latest}\nsinks: [topic: t]", "the source has an end"),
        ("sources: {a: {topic: a}, b: {topic: b}}\nsinks: [topic: t]", "there are several sources"),
        ("source: {topic: t}\nsinks: [console: true]", "a console (sinks[0]) takes batches"),
        ("source: {topic: t}\nsinks: [{topic: a}, {table: a}]", "a table (sinks[1]) takes batches"),
        (
            "source: {topic: t}\nsinks: [{topic: t, delivery: exactly-once}]",
            "exactly-once delivery (sinks[0]) needs a transaction for each batch",
        ),
        (
            "source: {topic: t}\nsinks: [topic: t]\nsteps: [deduplicate: id]",
            "de-duplication (steps[0].deduplicate) keeps state",
        ),
        (
            "source: {topic: t}\nsinks: [topic: t]\nsteps: [{map: {function: 'json:loads', returns: a int}}]",
            "a Python function runs on the rows (steps[0].map)",
        ),
    ],
)
def test_what_can_never_be_real_time(tmp_path: Path, parts: str, why: str) -> None:
    text = f"pipeline: p\nmode: real-time\n{parts}\n"
    assert mistakes(tmp_path, text) == [f"2: mode: real-time is not possible: {why}; `auto` takes it wherever it can"]
    assert read_text(tmp_path, text.replace("real-time", "auto"))


def test_all_reasons_in_one(tmp_path: Path) -> None:
    (found,) = mistakes(tmp_path, "pipeline: p\nmode: real-time\nsource: {files: in}\nsinks: [console: true]\n")
    assert "it reads topics only, not files, a console (sinks[0]) takes batches" in found


def test_what_can_be_real_time(tmp_path: Path) -> None:
    steps = "[filter: a, sql: SELECT * FROM stream]"
    text = f"pipeline: p\nmode: real-time\nsource: {{topic: t}}\nsteps: {steps}\nsinks: [topic: u]\n"
    assert read_text(tmp_path, text)[0].mode == "real-time"


def with_steps(*steps: Step | Any, **fields: Any) -> Pipeline:
    return Pipeline(name="p", source=TopicSource(topic="t"), steps=steps, sinks=[ConsoleSink()], **fields)


def test_a_pipeline_that_was_not_read_from_a_file() -> None:
    check(with_steps(FilterStep(where="a")))
    step = JoinStep(with_="custs", on="id")
    with pytest.raises(PipelineErrors) as caught:
        check(with_steps(step, tables={"customers": Table(topic="c")}))
    (error,) = caught.value.errors
    assert error.place is not None
    assert step.place is not None
    assert error.place == step.place._replace(field="steps[0].join.with")
    assert error.message == "there is no source or table `custs`; did you mean `customers`?"


def test_a_function_asks_for_tables_by_name() -> None:
    def joined(stream: Any, customers: Any, other: Any = None) -> Any:
        return stream.join(customers)

    check(with_steps(joined, tables={"customers": Table(topic="c")}))
    with pytest.raises(
        PipelineErrors, match="the function asks for `customers`, but there is no source or table of this name"
    ):
        check(with_steps(joined, tables={"customer": Table(topic="c")}))


def test_the_same_sink_twice() -> None:
    sinks = [TopicSink(topic="a"), TopicSink(topic="b"), TopicSink(topic="a")]
    with pytest.raises(PipelineErrors, match=r"sinks\[2\]: this is the same as sinks\[0\]"):
        check(Pipeline(name="p", source=TopicSource(topic="t"), sinks=sinks))
    check(
        Pipeline(name="p", source=TopicSource(topic="t"), sinks=[TopicSink(topic="a"), TopicSink(topic="a", where="x")])
    )
