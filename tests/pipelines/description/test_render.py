"""A pipeline written out and read again is the same pipeline."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.pipelines import (
    AddStep,
    AggregateStep,
    BackPressure,
    CassandraSink,
    CastStep,
    ConsoleSink,
    DatabaseSink,
    DatabaseSource,
    DeduplicateStep,
    DropStep,
    FilesSink,
    FilesSource,
    FilterStep,
    GeneratorSource,
    JoinStep,
    LookupStep,
    MapStep,
    ParseStep,
    Pipeline,
    PipelineError,
    PythonStep,
    SelectStep,
    SqlStep,
    StateStep,
    Table,
    TableSink,
    TailSource,
    TopicSink,
    TopicSource,
    WatermarkStep,
    Window,
    read,
)
from millstream.pipelines.description.sinks import SINKS
from millstream.pipelines.description.sources import SOURCES
from millstream.pipelines.description.steps import STEPS
from support.descriptions import read_text

texts = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], include_characters="\n\t${}:#-'\"|>&*!%@`"),
    min_size=1,
)
columns = st.lists(texts, min_size=1, max_size=3)
options = st.dictionaries(texts, texts, max_size=3)
some_options = st.dictionaries(texts, texts, min_size=1, max_size=3)
names = st.from_regex(r"[a-z_][a-z0-9_]{0,9}", fullmatch=True).filter(lambda name: name != "stream")
topics = st.from_regex(r"[a-z0-9_-]{1,20}", fullmatch=True)
spans = st.one_of(st.integers(0, 10**7).map(lambda number: number / 1000), st.floats(0, 1e6))
counts = st.integers(1, 10**9)
urls = st.sampled_from(["mysql://u:p@h/db", "postgresql://h:1/db?a=b", "sqlite:////tmp/${x}.db"])
paths = st.sampled_from(["/data/a", "hdfs://h/a", "/data/with space/*.json"])
ddl = st.sampled_from(["id bigint", "id bigint, name string"])


BUILT: set[type] = {SqlStep, JoinStep}


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def built(model: Any, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Elements with any of these fields; those whose names end in `_` must be there."""
    BUILT.add(model)
    required = {name.rstrip("_"): strategy for name, strategy in fields.items() if name.endswith("_")}
    optional = {name: strategy for name, strategy in fields.items() if not name.endswith("_")}
    return st.fixed_dictionaries(required, optional=optional).map(model.model_validate)


positions = st.one_of(
    st.sampled_from(["earliest", "latest", "2026-01-31T12:00:00Z", "15m"]),
    st.dictionaries(topics, st.dictionaries(st.integers(0, 9), st.integers(0, 10**12), min_size=1), min_size=1),
)
watermarks = st.sampled_from(["time, 10 minutes", "t, 5s"])
sources = st.one_of(
    built(TopicSource, topic_=st.lists(topics, min_size=1, max_size=3), value=st.sampled_from(["text", "csv", "raw"]),
          start=positions, schema=ddl, watermark=watermarks, bootstrap=texts, options=options, key=st.just("text")),
    built(TopicSource, pattern_=st.sampled_from(["a.*", "^x$"]), end=st.sampled_from(["latest", "2026-01-31"])),
    built(DatabaseSource, database_=urls, table_=texts, incrementing_=texts, timestamp=texts, delay=spans, poll=spans,
          start=st.integers() | texts),
    built(DatabaseSource, database_=urls, query_=texts, timestamp_=texts),
    built(FilesSource, files_=paths, format=st.just("csv"), schema=ddl, max_files=counts, options=options),
    built(TailSource, tail_=st.lists(paths, min_size=1, max_size=2), start=st.just("latest")),
    built(GeneratorSource, generate_=options, rate=counts, limit=counts),
)  # fmt: skip
tables = st.one_of(
    built(Table, topic_=topics, value=st.just("text"), schema=ddl, refresh=spans),
    built(Table, database_=urls, query_=texts, refresh=spans),
    built(Table, table_=texts, options=options),
    built(Table, files_=paths, format=st.just("parquet")),
)
windows = st.one_of(
    built(Window, column_=texts, size_=st.just(60), slide=st.floats(0.5, 60)),
    built(Window, column_=texts, gap_=spans),
)
common = {"name_": texts, "on_": texts, "cache": st.integers(0, 10**6), "refresh": spans, "away": st.just("stale")}
values = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts)
steps = st.one_of(
    st.builds(SqlStep, sql=st.sampled_from(["SELECT 1", "SELECT *\nFROM stream\n", "SELECT '${x}' AS a FROM stream"])),
    built(ParseStep, format_=st.sampled_from(["json", "csv"]), schema_=ddl, column=texts, keep=st.booleans()),
    built(ParseStep, format_=st.sampled_from(["key-value", r"(?<a>\d+)$"])),
    built(CastStep, columns_=some_options),
    built(CastStep, columns_=st.just({"columns": "int"})),
    built(FilterStep, where_=texts),
    built(SelectStep, columns_=columns),
    built(AddStep, columns_=some_options),
    built(DropStep, columns_=columns),
    built(WatermarkStep, column_=texts, delay_=spans, late=st.just("dead-letter")),
    built(DeduplicateStep, by_=columns),
    built(AggregateStep, by=columns, compute_=some_options, window=windows),
    built(LookupStep, type_=st.just("memory"), rows_=st.dictionaries(texts, st.dictionaries(texts, values)), **common),
    built(LookupStep, type_=st.just("file"), path_=st.just("hdfs://h/a.csv"), key=texts, columns=ddl, **common),
    built(LookupStep, type_=st.just("sql"), database_=urls, table_=texts, missing=st.just("drop"), **common),
    built(LookupStep, type_=st.just("redis"), url_=st.just("redis://:p@h/0"), columns_=ddl, prefix=texts, **common),
    built(PythonStep, function_=st.sampled_from(["json:loads", "os.path:join"])),
    built(MapStep, function_=st.just("json:loads"), returns_=ddl),
    built(StateStep, processor_=st.just("json:JSONDecoder"), by_=columns, returns_=ddl, time=st.just("event")),
)
part = {"where": texts, "select": columns}
sinks = st.one_of(
    built(TopicSink, topic_=topics, value=st.just("text"), key=texts, headers=options, partitions=counts,
          options=options, delivery=st.just("exactly-once"), **part),
    built(DatabaseSink, database_=urls, table_=texts, key=columns, create=st.booleans(), types=options, **part),
    built(CassandraSink, cassandra_=texts, keyspace_=texts, table_=texts, key_=columns, clustering=columns, ttl=counts,
          user=texts, password=texts, **part),
    built(TableSink, table_=texts, format=st.just("orc"), partition_by=columns, options=options, location=paths),
    built(FilesSink, files_=paths, partition_by=columns),
    built(ConsoleSink, console_=st.booleans() | counts, **part),
)  # fmt: skip


@st.composite
def pipelines(draw: st.DrawFn) -> Pipeline:
    named = draw(st.dictionaries(names, sources, min_size=1, max_size=2))
    beside = draw(st.dictionaries(names.filter(lambda name: name not in named), tables, max_size=2))
    joins = [JoinStep(with_=name, on=draw(texts | columns), how="left") for name in [*list(named)[1:], *beside]]
    one = {"source": next(iter(named.values()))} if len(named) == 1 else {"sources": named}
    fields = draw(
        st.fixed_dictionaries(
            {"sinks": st.lists(sinks, min_size=1, max_size=3, unique=True)},
            optional={
                "description": texts,
                "mode": st.sampled_from(["micro-batch", "once"]),
                "every": spans,
                "real_time_batch": st.floats(5, 1000),
                "output": st.sampled_from(["update", "complete"]),
                "dead_letters": topics,
                "on_error": st.just("fail"),
                "back_pressure": st.builds(
                    BackPressure, max_records=maybe(counts), target=spans, adaptive=st.booleans()
                ),
                "spark": options,
            },
        )
    )
    return Pipeline.model_validate(
        {"pipeline": "p", "tables": beside, "steps": [*draw(st.lists(steps, max_size=4)), *joins], **one, **fields}
    )


@settings(max_examples=50, deadline=None)
@given(pipelines())
def test_round_trip(pipeline: Pipeline) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.yaml"
        path.write_text(pipeline.to_yaml(), encoding="utf-8", newline="")
        (again,) = read(path, {})
    assert again == pipeline
    assert again.to_dict() == pipeline.to_dict()


def test_no_kind_is_left_out() -> None:
    assert {*SOURCES.values(), *SINKS.values(), *STEPS.values()} <= BUILT


def test_only_what_was_said_and_short_where_it_can_be(tmp_path: Path) -> None:
    text = """\
        pipeline: p
        source:
          topic: clicks
          value: text
        steps:
        - filter: status >= 400
        - sql: |-
            SELECT *
            FROM stream
        - cast:
            a: int
        - deduplicate: id
        - watermark:
            column: time
            delay: 10m
        sinks:
        - topic: out
        - console: true
        every: 1m30s
        """
    (pipeline,) = read_text(tmp_path, text)
    assert pipeline.to_yaml() == "\n".join(line[8:] for line in text.split("\n"))


def test_what_came_from_the_environment_stays_there(tmp_path: Path) -> None:
    text = """\
        pipeline: p
        source: {topics: ["${TOPIC}"], options: {kafka.sasl.password: "${PASSWORD}"}}
        steps:
          - filter: stage = '${STAGE}'
          - lookup: {name: l, on: ip, type: file, path: "${FILE}"}
          - select: ["${COLUMN}", "$${plain}"]
        sinks:
          - {database: "mysql://u:${PASSWORD}@h/db", table: t, key: "${COLUMN}"}
          - {topic: t, partitions: "${N}"}
        """
    environ = {"TOPIC": "t", "PASSWORD": "hunter2", "STAGE": "test", "FILE": "ranges.csv", "COLUMN": "a", "N": "3"}
    (tmp_path / "ranges.csv").write_text("a\n")
    (pipeline,) = read_text(tmp_path, text, environ)
    found = pipeline.to_dict()
    assert found["source"] == {"topic": "${TOPIC}", "options": {"kafka.sasl.password": "${PASSWORD}"}}
    assert found["steps"][0] == {"filter": "stage = '${STAGE}'"}
    assert found["steps"][1]["lookup"]["path"] == str(tmp_path / "ranges.csv")
    assert found["steps"][2] == {"select": ["${COLUMN}", "$${plain}"]}
    assert found["sinks"][0] == {"database": "mysql://u:${PASSWORD}@h/db", "table": "t", "key": "${COLUMN}"}
    assert found["sinks"][1] == {"topic": "t", "partitions": 3}
    assert "hunter2" not in pipeline.to_yaml()
    (tmp_path / "again.yaml").write_text(pipeline.to_yaml())
    assert read(tmp_path / "again.yaml", environ) == [pipeline]


def test_code_without_a_name_cannot_be_written_down() -> None:
    pipeline = Pipeline(
        name="p", source=TopicSource(topic="t"), steps=[lambda stream: stream], sinks=[TopicSink(topic="u")]
    )
    with pytest.raises(PipelineError, match=r"test_render\.py:\d+: .*<lambda> has no name by which another process"):
        pipeline.to_yaml()


def test_code_is_named_by_where_it_is(tmp_path: Path) -> None:
    (pipeline,) = read_text(
        tmp_path,
        """\
        from millstream.pipelines import *

        def clean(row):
            return row

        steps = [MapStep(function=clean, returns="a int")]

        @pipeline("p", source=TopicSource(topic="t"), sinks=[ConsoleSink()], steps=steps)
        def loud(stream):
            return stream
        """,
        name="p.py",
    )
    file = tmp_path / "p.py"
    assert pipeline.to_dict()["steps"] == [
        {"map": {"function": f"{file}:clean", "returns": "a int"}},
        {"python": f"{file}:loud"},
    ]
    (tmp_path / "p.yaml").write_text(pipeline.to_yaml())
    assert read(tmp_path / "p.yaml") == [pipeline]
