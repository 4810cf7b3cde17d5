"""Files as a source: each once, malformed lines as errors whatever is asked for, all formats."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row

from millstream.pipelines.description.sources import FilesSource
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.sources.files import FilesReader

Read = Callable[[DataFrame], list[Row]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "incoming"
    folder.mkdir()
    return folder


def reader(context: Context, folder: Path, **fields: Any) -> FilesReader:
    return FilesReader(FilesSource(files=str(folder), **fields), "incoming", context)


def found(read: Read, source: FilesReader) -> list[Row]:
    return read(source.rows(source.raw_stream()))


def good(rows: list[Row], *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[column] for column in columns) for row in rows if row["_error"] is None)


def bad(rows: list[Row]) -> list[tuple[str, bytes]]:
    return [(row["_error"]["error"], row["_origin"]["value"]) for row in rows if row["_error"] is not None]


def test_json_lines_and_new_files(context: Context, folder: Path, read: Read) -> None:
    (folder / "1.json").write_text('{"id": 1, "name": "a"}\n{"id": "x"}\nno json\n')
    source = reader(context, folder, schema="id bigint, name string")
    assert source.can_fail
    rows = found(read, source)
    assert good(rows, "id", "name") == [(1, "a")]
    assert sorted(bad(rows)) == [("not-json", b"no json"), ("wrong-type", b'{"id": "x"}')]
    assert rows[0]["_origin"]["topic"].endswith("/incoming/1.json")
    (folder / "2.json").write_text('{"id": 2}\n')
    assert good(found(read, source), "id") == [(2,)]


def test_a_mistake_in_a_column_that_nobody_asks_for_is_still_one(context: Context, folder: Path, read: Read) -> None:
    (folder / "1.csv").write_text("id,n\n1,1\n2,x\n3\n")
    source = reader(context, folder, format="csv", schema="id bigint, n int", options={"header": "true"})
    rows = source.rows(source.raw_stream())
    assert read(rows.where("_error IS NULL").select("id")) == [Row(id=1)]


def test_csv_with_a_header_and_line_breaks(context: Context, folder: Path, read: Read) -> None:
    (folder / "1.csv").write_text('id;name\n1;"a;b"\n2;"c\nd"\n3\n')
    (folder / "2.csv").write_text("id;name\n4;\n")
    options = {"header": "true", "multiLine": "true", "sep": ";"}
    source = reader(context, folder, format="csv", options=options)
    rows = found(read, source)
    assert {(row["id"], row["name"]) for row in rows if row["_error"] is None} == {(1, "a;b"), (2, "c\nd"), (4, None)}
    assert [kind for kind, _ in bad(rows)] == ["not-csv"]


def test_csv_without_a_header(context: Context, folder: Path, read: Read) -> None:
    (folder / "1.csv").write_text("1,a\nx,b\n")
    rows = found(read, reader(context, folder, format="csv", schema="id bigint, name string"))
    assert good(rows, "id", "name") == [(1, "a")]
    assert bad(rows) == [("not-csv", b"x,b")]


def test_whole_json_documents(context: Context, folder: Path, read: Read) -> None:
    (folder / "1.json").write_text(json.dumps([{"id": 1}, {"id": 2}], indent=1))
    (folder / "2.json").write_text(json.dumps({"id": 3}, indent=1))
    (folder / "3.json").write_text('[{"id": 4}, ')
    rows = found(read, reader(context, folder, schema="id bigint", options={"multiLine": "true"}))
    assert good(rows, "id") == [(1,), (2,), (3,)]
    assert bad(rows) == [("not-json", b'[{"id": 4}, ')]


def test_text_and_folders_with_values(context: Context, folder: Path, read: Read) -> None:
    (folder / "day=7").mkdir()
    (folder / "day=7" / "1.txt").write_bytes(b"one\n\xff\n")
    rows = found(read, reader(context, folder, format="text"))
    assert good(rows, "value", "day") == [("one", 7)]
    assert bad(rows) == [("not-utf8", b"\xff")]


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
def test_files_with_types(context: Context, folder: Path, read: Read, kind: Any) -> None:
    context.spark.sql("SELECT 1L AS id, 'a' AS name").write.format(kind).mode("overwrite").save(str(folder))
    source = reader(context, folder, format=kind)
    assert not source.can_fail
    (row,) = found(read, source)
    assert (row["id"], row["name"], json.loads(row["_origin"]["value"])) == (1, "a", {"id": 1, "name": "a"})


def test_at_most_so_many_files_in_a_batch(context: Context, folder: Path) -> None:
    for number in range(3):
        (folder / f"{number}.txt").write_text(f"{number}\n")
    sizes: list[int] = []
    stream = reader(context, folder, format="text", max_files=2).raw_stream()
    query = (
        stream.writeStream.foreachBatch(lambda batch, _: sizes.append(batch.count())).trigger(availableNow=True).start()
    )
    query.awaitTermination()
    assert sizes == [2, 1]


def test_the_schema_is_inferred_once(context: Context, folder: Path) -> None:
    with pytest.raises(PipelineError, match=r"no file in .* to infer a schema from: give `schema`"):
        reader(context, folder)
    (folder / "1.json").write_text('{"id": 1}\n')
    source = reader(context, folder)
    assert source.rows(source.raw_stream()).columns == ["id", "_origin", "_error"]
    (folder / "1.json").write_text('{"other": 1}\n')
    again = reader(context, folder)
    assert again.rows(again.raw_stream()).columns == ["id", "_origin", "_error"]


def test_a_folder_that_is_not_there(context: Context, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"there is no folder .*/gone"):
        reader(context, tmp_path / "gone", format="text")


def test_batches_cannot_be_read_again(context: Context, folder: Path) -> None:
    with pytest.raises(PipelineError, match="only its checkpoint knows"):
        reader(context, folder, format="text").raw_batch("{}", "{}")
