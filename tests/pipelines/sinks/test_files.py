"""The files sink, on this machine and on HDFS."""

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pyspark.sql import SparkSession

from millstream.pipelines.description.sinks import FilesSink
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.rows import visible_schema, without_hidden
from millstream.pipelines.spark.sinks import READ_BACK
from millstream.pipelines.spark.sinks.file_batches import FileBatches
from millstream.pipelines.spark.sinks.folder import Folder
from millstream.pipelines.spark.sinks.manifest import HOME, KEPT, Manifest
from support.sinks import Crash, batch, context_for, counted, crash_at, rows_of, writer_for, written

STEPS = ("exists", "names", "files", "read", "write", "move", "remove")
NOON = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
PLAIN = (
    "yes boolean, tiny tinyint, small smallint, whole int, big bigint, single float, double double, "
    "price decimal(12,2), huge decimal(38,10), text string, day date, moment timestamp, wall timestamp_ntz"
)
PLAIN_ROW = (
    True, 1, 2, 3, 2**40, 0.1, 0.2, Decimal("12.30"), Decimal("12345678901234567890.0123456789"),
    ' tëxt 🙂 \'q\' "q\\", \n z ', date(2026, 1, 31), NOON, datetime(2026, 3, 29, 2, 30, 0, 5),
)  # fmt: skip
NESTED = ", bytes binary, tags array<string>, place struct<x: int, y: string>, counts map<string, int>"
NESTED_ROW = (b"\x00\xff", ["a", "b"], (1, "z"), {"k": 1})


def in_sight(folder: Path) -> list[str]:
    """The files that a reader sees, relative to the folder."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(str(path) for path in found if not any(part.startswith(("_", ".")) for part in path.parts))


@pytest.mark.parametrize("kind", ["parquet", "orc", "json", "csv", "avro"])
def test_every_type_comes_back_as_it_went(spark: SparkSession, tmp_path: Path, kind: Any) -> None:
    schema, full = (PLAIN, PLAIN_ROW) if kind == "csv" else (PLAIN + NESTED, PLAIN_ROW + NESTED_ROW)
    rows = rows_of(spark, schema, full, (None,) * len(full))
    sink = FilesSink(files=str(tmp_path / "out folder"), format=kind)
    context = context_for(spark, sink, tmp_path)
    assert READ_BACK[FilesSink](sink, context, visible_schema(rows)) is None
    assert written(context, rows) == [None]
    found = READ_BACK[FilesSink](sink, context, visible_schema(rows))
    assert found is not None
    assert found.schema.simpleString() == visible_schema(rows).simpleString()
    assert sorted(found.collect(), key=str) == sorted(without_hidden(rows).collect(), key=str)


def test_options_are_the_users(spark: SparkSession, tmp_path: Path) -> None:
    options = {"HEADER": "true", "sep": ";", "ignoreleadingwhitespace": "true", "compression": "gzip"}
    sink = FilesSink(files=str(tmp_path / "out"), format="csv", options=options)
    written(context_for(spark, sink, tmp_path), rows_of(spark, "id int, name string", (1, " one ")))
    (name,) = in_sight(tmp_path / "out")
    assert name.endswith(".csv.gz")
    found = spark.read.text(str(tmp_path / "out")).collect()
    assert [row.value for row in found] == ["id;name", "1;one "]


def test_columns_become_folders(spark: SparkSession, tmp_path: Path) -> None:
    sink = FilesSink(files=str(tmp_path / "out"), partition_by=("day", "shop"))
    context = context_for(spark, sink, tmp_path)
    day = date(2026, 1, 31)
    rows = rows_of(spark, "day date, id int, shop string", (day, 1, "a/b: c%"), (None, 2, None), (day, 3, "01"))
    written(context, rows)
    assert [name.rpartition("/")[0] for name in in_sight(tmp_path / "out")] == [
        "day=2026-01-31/shop=01",
        "day=2026-01-31/shop=a%2Fb%3A c%25",
        "day=__HIVE_DEFAULT_PARTITION__/shop=__HIVE_DEFAULT_PARTITION__",
    ]
    found = READ_BACK[FilesSink](sink, context, visible_schema(rows))
    assert found is not None
    assert sorted(found.collect(), key=str) == sorted(without_hidden(rows).collect(), key=str)


def test_the_same_batch_again_is_written_once(spark: SparkSession, tmp_path: Path) -> None:
    context = context_for(spark, FilesSink(files=str(tmp_path / "out")), tmp_path)
    rows = counted(spark, 3, "id")
    for number in (0, 0, 1, 1, 0):
        writer = writer_for(context)
        writer.open(visible_schema(rows))
        writer.write(rows, batch(context, number))
    assert spark.read.parquet(str(tmp_path / "out")).count() == 6
    writer.write(rows, batch(context, 0, query="another checkpoint"))
    assert spark.read.parquet(str(tmp_path / "out")).count() == 9


def test_of_a_batch_without_rows_nothing_stays(spark: SparkSession, tmp_path: Path) -> None:
    context = context_for(spark, FilesSink(files=str(tmp_path / "out")), tmp_path)
    written(context, counted(spark, 0, "id"))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    written(context, counted(spark, 2, "id"), counted(spark, 2, "id").where("id > 5"))
    assert len(in_sight(tmp_path / "out")) == 1


def test_marks_of_the_last_batches_stay_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    context = context_for(spark, FilesSink(files=str(tmp_path / "out")), tmp_path)
    written(context, *[counted(spark, 1, "id")] * (KEPT + 2))
    (owner,) = (tmp_path / "out" / HOME).iterdir()
    left = sorted(path.name for path in owner.iterdir() if not path.name.startswith("."))
    assert left == [f"{number:06d}.done" for number in range(2, KEPT + 2)]


@pytest.fixture(params=["local", "hdfs"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder that is not there yet, on each file system in turn."""
    return str(tmp_path / "out") if request.param == "local" else f"{request.getfixturevalue('hdfs').url}/out"


def test_killed_at_every_moment_it_neither_loses_nor_doubles(spark: SparkSession, folder: str, tmp_path: Path) -> None:
    """One batch that the process does not survive, each time a little further on."""
    context = context_for(spark, FilesSink(files=folder, partition_by=("part",)), tmp_path)
    rows = counted(spark, 4, "id", "id % 2 AS part")
    for moment in range(200):
        writer = writer_for(context)
        writer.open(visible_schema(rows))
        with crash_at(moment, Folder, *STEPS) as crashed, suppress(Crash):
            writer.write(rows, batch(context, 0))
        if not crashed():
            break
    assert 10 < moment < 199
    assert sorted(row.id for row in spark.read.parquet(folder).collect()) == [0, 1, 2, 3]


def after_staging() -> Any:
    return mock.patch.object(Manifest, "plan", side_effect=Crash)


def after_the_manifest() -> Any:
    return mock.patch.object(Manifest, "carry_out", side_effect=Crash)


def after_half_of_the_moves() -> Any:
    whole = Manifest.carry_out

    def half(manifest: Manifest, moves: Any) -> None:
        whole(manifest, moves[: len(moves) // 2])
        raise Crash

    return mock.patch.object(Manifest, "carry_out", half)


def before_done() -> Any:
    return mock.patch.object(Manifest, "finish", side_effect=Crash)


@pytest.mark.parametrize(
    ("crash", "in_place", "written_anew"),
    [
        (after_staging, 0, True),
        (after_the_manifest, 0, False),
        (after_half_of_the_moves, 2, False),
        (before_done, 4, False),
    ],
)
def test_what_a_crash_left_is_finished(
    spark: SparkSession, tmp_path: Path, crash: Callable[[], Any], in_place: int, written_anew: bool
) -> None:
    out = tmp_path / "out"
    context = context_for(spark, FilesSink(files=str(out), partition_by=("part",)), tmp_path)
    rows = counted(spark, 8, "id", "id % 4 AS part")
    writer = writer_for(context)
    writer.open(visible_schema(rows))
    with crash(), pytest.raises(Crash):
        writer.write(rows, batch(context, 0))
    before = {name: (out / name).stat().st_ino for name in in_sight(out)}
    assert len(before) == in_place
    writer = writer_for(context)
    writer.open(visible_schema(rows))
    staged = FileBatches._staged
    with mock.patch.object(FileBatches, "_staged", autospec=True, side_effect=staged) as writes:
        writer.write(rows, batch(context, 0))
    assert writes.called == written_anew
    assert before.items() <= {name: (out / name).stat().st_ino for name in in_sight(out)}.items()
    assert len(in_sight(out)) == 4
    assert sorted(row.id for row in spark.read.parquet(str(out)).collect()) == list(range(8))


def test_a_file_that_was_removed_before_its_batch_was_done_is_told(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    context = context_for(spark, FilesSink(files=str(out)), tmp_path)
    with before_done(), pytest.raises(Crash):
        written(context, counted(spark, 2, "id"))
    (name,) = in_sight(out)
    (out / name).unlink()
    with pytest.raises(PipelineError, match=rf"{name} is gone, .* rename .*000000.plan to .*000000.done"):
        written(context, counted(spark, 2, "id"))


def test_a_reader_sees_whole_files_of_batches_only(spark: SparkSession, tmp_path: Path) -> None:
    """While a batch is staged and while half of its files are in place."""
    out = str(tmp_path / "out")
    context = context_for(spark, FilesSink(files=out, partition_by=("part",)), tmp_path)
    rows = counted(spark, 8, "id", "id % 4 AS part")
    written(context, rows)
    seen = []
    whole = Folder.move

    def move(folder: Folder, source: str, target: str) -> None:
        reader = threading.Thread(target=lambda: seen.append(sorted(spark.read.parquet(out).collect())))
        reader.start()
        reader.join()
        whole(folder, source, target)

    writer = writer_for(context)
    writer.open(visible_schema(rows))
    with mock.patch.object(Folder, "move", move):
        writer.write(rows, batch(context, 1))
    assert [len(found) for found in seen] == [8, 8, 10, 12, 14, 16]  # the manifest, four files, the mark
    assert all(set(row.asDict()) == {"id", "part"} for found in seen for row in found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"partition_by": ["day"]}, "partition_by: the rows have no column day; they have id, place"),
        ({"partition_by": ["id", "place"]}, "all columns become folders"),
        ({"format": "csv"}, r"csv has no type for column place \(array<int>\)"),
        ({"files": "nosuch://somewhere/out"}, 'No FileSystem for scheme "nosuch"'),
    ],
)
def test_what_does_not_fit_is_said_with_its_place(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    sink = FilesSink(**{"files": str(tmp_path / "out"), **options})
    with pytest.raises(PipelineError, match=message) as error:
        writer_for(context_for(spark, sink, tmp_path)).open(
            visible_schema(counted(spark, 1, "id", "array(1) AS place"))
        )
    assert error.value.place == sink.place


def test_what_spark_refuses_to_write_is_said_with_its_place(spark: SparkSession, tmp_path: Path) -> None:
    sink = FilesSink(files=str(tmp_path / "out"))
    with pytest.raises(PipelineError, match="COLUMN_ALREADY_EXISTS") as error:
        written(context_for(spark, sink, tmp_path), counted(spark, 1, "id", "1 AS ID"))
    assert error.value.place == sink.place
