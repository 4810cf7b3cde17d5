"""Files that are right: what is read from them, and that each part knows its line."""

from pathlib import Path

import pytest

from millstream.pipelines import (
    AddStep,
    AggregateStep,
    CastStep,
    ConsoleSink,
    DatabaseSource,
    DeduplicateStep,
    FilesSource,
    FilterStep,
    JoinStep,
    LookupStep,
    ParseStep,
    Pipeline,
    PipelineError,
    SelectStep,
    SqlStep,
    Table,
    TableSink,
    TailSource,
    TopicSink,
    TopicSource,
    WatermarkStep,
    Window,
    read,
)
from millstream.pipelines.description.element import Element, Place
from support.descriptions import mistakes, read_text, written

FRAUD = """\
    pipeline: fraud-ips
    source: {topic: accesslog, value: text, start: earliest}
    steps:
      - parse: apache-access-log
      - lookup: {name: fraud-ranges, on: "split(ip, '[.]')[0]", type: file, path: ranges.csv}
      - sql: SELECT ip, date, request_url, protocol_type, status_code FROM stream WHERE fraud
    sinks:
      - {topic: fraudip, value: json, key: ip}
      - {table: warehouse.fraud, format: parquet, partition_by: [date]}
    """


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ranges.csv").write_text("range,fraud\n")
    return tmp_path


def test_yaml_and_python_that_say_the_same_are_equal(folder: Path) -> None:
    in_python = Pipeline(
        name="fraud-ips",
        source=TopicSource(topic="accesslog", value="text", start="earliest"),
        steps=[
            ParseStep(format="apache-access-log"),
            LookupStep(name="fraud-ranges", on="split(ip, '[.]')[0]", type="file", path=str(folder / "ranges.csv")),
            SqlStep(sql="SELECT ip, date, request_url, protocol_type, status_code FROM stream WHERE fraud"),
        ],
        sinks=[
            TopicSink(topic="fraudip", value="json", key="ip"),
            TableSink(table="warehouse.fraud", format="parquet", partition_by=["date"]),
        ],
    )
    assert read_text(folder, FRAUD) == [in_python]
    assert hash(read_text(folder, FRAUD)[0]) == hash(in_python)


def test_every_part_knows_its_line(folder: Path) -> None:
    (pipeline,) = read_text(folder, FRAUD)
    file = str(folder / "p.yaml")
    assert pipeline.place == Place(file, 1, "")
    assert pipeline.source is not None
    assert pipeline.source.place == Place(file, 2, "source")
    assert [step.place for step in pipeline.steps] == [
        Place(file, 4, "steps[0].parse"),
        Place(file, 5, "steps[1].lookup"),
        Place(file, 6, "steps[2].sql"),
    ]
    assert [sink.place for sink in pipeline.sinks] == [Place(file, 8, "sinks[0]"), Place(file, 9, "sinks[1]")]


def test_inner_parts_know_theirs(tmp_path: Path) -> None:
    (pipeline,) = read_text(
        tmp_path,
        """\
        pipeline: p
        sources:
          clicks: {topic: clicks}
          views:
            topic: views
        tables:
          customers:
            topic: customers
        steps:
          - watermark: time, 10 minutes
          - aggregate:
              compute: {n: count(*)}
              window:
                column: time
                size: 1 minute
        sinks: [console: true]
        back_pressure:
          max_records: 5
        """,
    )
    step = pipeline.steps[1]
    assert isinstance(step, AggregateStep)
    assert step.window is not None
    lines = [
        (element.place.line, element.place.field)
        for element in (*pipeline.sources.values(), *pipeline.tables.values(), step.window, pipeline.back_pressure)
        if element.place is not None
    ]
    assert lines == [
        (3, "sources.clicks"),
        (4, "sources.views"),
        (7, "tables.customers"),
        (13, "steps[1].aggregate.window"),
        (17, "back_pressure"),
    ]


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("filter: status >= 400", FilterStep(where="status >= 400")),
        ("filter: {where: status >= 400}", FilterStep(where="status >= 400")),
        ("filter: true", FilterStep(where="true")),
        ("cast: {a: int, b: string}", CastStep(columns={"a": "int", "b": "string"})),
        ("cast: {columns: {a: int}}", CastStep(columns={"a": "int"})),
        ("cast: {columns: int}", CastStep(columns={"columns": "int"})),
        ("cast: {columns: int, a: int}", CastStep(columns={"columns": "int", "a": "int"})),
        ("add: {version: 1, rate: 1.10, on: true}", AddStep(columns={"version": "1", "rate": "1.10", "on": "true"})),
        ("select: a", SelectStep(columns=["a"])),
        ("select: [a, b]", SelectStep(columns=["a", "b"])),
        ("deduplicate: id", DeduplicateStep(by=["id"])),
        ("watermark: time, 10 minutes", WatermarkStep(column="time", delay=600)),
        ("watermark: {column: time, delay: 5s, late: drop}", WatermarkStep(column="time", delay="5s")),
        ("join: {with: customers, on: id}", JoinStep(with_="customers", on="id")),
        ("join: {with: customers, on: [id, day]}", JoinStep(with_="customers", on=["id", "day"])),
        (
            "aggregate: {by: day, compute: {n: count(*)}, window: {column: t, gap: 5 minutes}}",
            AggregateStep(by="day", compute={"n": "count(*)"}, window=Window(column="t", gap=300)),
        ),
        (
            "lookup: {name: n, on: ip, type: memory, rows: {10: {fraud: true, n: 5}}}",
            LookupStep(name="n", on="ip", type="memory", rows={"10": {"fraud": True, "n": 5}}),
        ),
    ],
)
def test_steps(tmp_path: Path, text: str, step: Element) -> None:
    (pipeline,) = read_text(
        tmp_path,
        f"""\
        pipeline: p
        source: {{topic: t}}
        tables: {{customers: {{topic: customers}}}}
        steps:
          - {text}
        sinks: [console: 5]
        """,
    )
    assert pipeline.steps == (step,)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("{topic: a}", TopicSource(topic="a")),
        ("{topics: [a, b]}", TopicSource(topic=["a", "b"])),
        ("{topic: [a, b]}", TopicSource(topic=["a", "b"])),
        ("{pattern: 'click.*'}", TopicSource(pattern="click.*")),
        ("{topic: 2026}", TopicSource(topic="2026")),
        ("{topic: a, start: 2026-01-31T12:00:00Z}", TopicSource(topic="a", start="2026-01-31T12:00:00Z")),
        ("{topic: a, start: 2026-01-31}", TopicSource(topic="a", start="2026-01-31")),
        ("{topic: a, start: {a: {0: 5, 1: 7}}}", TopicSource(topic="a", start={"a": {0: 5, 1: 7}})),
        (
            "{topic: a, options: {maxOffsets: 10, x: true}}",
            TopicSource(topic="a", options={"maxOffsets": "10", "x": "true"}),
        ),
        (
            "{database: 'mysql://u@h/db', table: t, incrementing: id, start: 5}",
            DatabaseSource(database="mysql://u@h/db", table="t", incrementing="id", start=5),
        ),
    ],
)
def test_sources(tmp_path: Path, text: str, source: Element) -> None:
    (pipeline,) = read_text(tmp_path, f"pipeline: p\nsource: {text}\nsinks: [console: true]\n")
    assert pipeline.source == source
    assert pipeline.named_sources == {"stream": source}
    assert pipeline.sinks == (ConsoleSink(),)


def test_names_that_follow(tmp_path: Path) -> None:
    (pipeline,) = read_text(tmp_path, "pipeline: clicks\nsource: {topic: t}\nsinks: [console: true]\n")
    assert (pipeline.group, pipeline.dead_letter_topic) == ("millstream-clicks", "clicks-dead-letters")
    (pipeline,) = read_text(tmp_path, "pipeline: p\ndead_letters: bad\nsource: {topic: t}\nsinks: [console: true]\n")
    assert pipeline.dead_letter_topic == "bad"


def test_relative_paths_are_meant_from_the_folder_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "click.avsc").write_text("{}")
    (tmp_path / "code.py").write_text("def clean(rows): ...\n")
    (pipeline,) = read_text(
        tmp_path,
        """\
        pipeline: p
        sources:
          a: {files: in/*.json}
          b: {tail: [logs/a.log, /var/log/b.log]}
          c: {topic: t, value: avro, schema: click.avsc}
          d: {files: "hdfs://namenode/in"}
          e: {topic: t, schema: "id bigint"}
          f: {database: "sqlite:///shop.db", table: t, incrementing: id}
        tables:
          t: {files: ../customers.csv}
        steps:
          - python: code.py:clean
        sinks:
          - {files: out}
          - {table: t, location: warehouse}
          - {files: "s3a://bucket/out"}
        """,
    )
    base = str(tmp_path)
    a, b, c, d, e, f = pipeline.sources.values()
    assert isinstance(a, FilesSource)
    assert a.files == f"{base}/in/*.json"
    assert isinstance(b, TailSource)
    assert b.tail == (f"{base}/logs/a.log", "/var/log/b.log")
    assert isinstance(c, TopicSource)
    assert c.schema_ == f"{base}/click.avsc"
    assert isinstance(d, FilesSource)
    assert d.files == "hdfs://namenode/in"
    assert isinstance(e, TopicSource)
    assert e.schema_ == "id bigint"
    assert isinstance(f, DatabaseSource)
    assert f.database == f"sqlite:///{base}/shop.db"
    assert pipeline.tables["t"] == Table(files=str(tmp_path.parent / "customers.csv"))
    assert pipeline.steps[0].content() == {"function": f"{base}/code.py:clean"}
    assert [getattr(sink, "files", None) or sink.content()["location"] for sink in pipeline.sinks] == [
        f"{base}/out",
        f"{base}/warehouse",
        "s3a://bucket/out",
    ]


def test_values_of_the_environment(tmp_path: Path) -> None:
    text = """\
        pipeline: p-${STAGE}
        source: {topic: "${TOPIC:-clicks}"}
        sinks:
          - {topic: t, partitions: "${PARTITIONS}"}
          - {cassandra: h, keyspace: k, table: t, key: id, password: "${PASSWORD}"}
        every: ${EVERY}
        """
    environ = {"STAGE": "test", "PARTITIONS": "3", "PASSWORD": "0123", "EVERY": "5s"}
    (pipeline,) = read_text(tmp_path, text, environ)
    assert pipeline.name == "p-test"
    assert pipeline.source == TopicSource(topic="clicks")
    assert pipeline.sinks[0] == TopicSink(topic="t", partitions=3)
    assert pipeline.sinks[1].content()["password"] == "0123"
    assert pipeline.every == 5


def test_several_pipelines_in_a_file(tmp_path: Path) -> None:
    text = """\
        pipeline: a
        source: {topic: a}
        sinks: [console: true]
        ---
        pipeline: b
        source: {topic: b}
        sinks: [console: true]
        """
    a, b = read_text(tmp_path, text)
    assert (a.name, b.name) == ("a", "b")
    assert b.place == Place(str(tmp_path / "p.yaml"), 5)


def test_of_the_same_name_there_can_be_only_one(tmp_path: Path) -> None:
    one = "pipeline: a\nsource: {topic: a}\nsinks: [console: true]\n"
    assert mistakes(tmp_path, f"{one}---\n{one}") == ["5: a pipeline of the name a is already in line 1"]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"there is no file .*nowhere\.yaml"):
        read(tmp_path / "nowhere.yaml")
    with pytest.raises(
        PipelineError, match=r"p\.txt is not a pipeline's file: their names end in \.yaml, \.yml or \.py"
    ):
        read(written(tmp_path, "", "p.txt"))
    (tmp_path / "latin.yaml").write_bytes(b"pipeline: \xe4\n")
    with pytest.raises(PipelineError, match=r"latin\.yaml cannot be read"):
        read(tmp_path / "latin.yaml")
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(PipelineError, match=r"folder\.yaml cannot be read"):
        read(tmp_path / "folder.yaml")


def test_bad_input_is_exit_code_2(tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as caught:
        read_text(tmp_path, "a: b\n")
    assert caught.value.exit_code == 2
