"""Stores that are read whole: memory and files."""

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from millstream.pipelines.spark.lookups.store import StoreAway
from millstream.pipelines.spark.lookups.tables import WatchedFile, memory_table


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def ddl(columns: str | None) -> StructType | None:
    found = None if columns is None else StructType.fromDDL(columns)
    assert found is None or isinstance(found, StructType)
    return found


def rows(table: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in table.collect()]


def test_memory_finds_out_its_types(spark: SparkSession) -> None:
    table = memory_table(spark, {"a": {"n": 1, "f": True}, "b": {"f": None, "x": None}}, None)

    assert table.schema.simpleString() == "struct<_lookup_key:string,n:bigint,f:boolean,x:string>"
    assert rows(table) == [("a", 1, True, None), ("b", None, None, None)]


def test_memory_takes_the_types_that_are_given(spark: SparkSession) -> None:
    table = memory_table(spark, {"a": {"n": 1}}, ddl("n int, more string"))

    assert table.schema.simpleString() == "struct<_lookup_key:string,n:int,more:string>"


@pytest.mark.parametrize(
    ("given", "columns", "message"),
    [
        ({"a": {"n": "x"}}, "n int", "values of different types, or not of those in `columns`"),
        ({"a": {"n": 1}, "b": {"n": "x"}}, None, "values of different types"),
        ({"a": {"m": 1}}, "n int", "`rows` has m, which `columns` does not name"),
        ({"a": {}}, None, "`rows` has no columns"),
    ],
)
def test_memory_that_does_not_fit(spark: SparkSession, given: Any, columns: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        memory_table(spark, given, ddl(columns))


def test_a_csv_file_with_the_first_of_each_key(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "ranges.csv"
    file.write_text("range,fraud,since\n064,true,2024-01-01\n64,false,\n064,false,\n,true,\n")

    table = WatchedFile(str(file), None, None, 60).current(spark)

    assert table.schema.simpleString() == "struct<_lookup_key:string,fraud:boolean,since:date>"
    assert [row[:2] for row in rows(table)] == [("064", True), ("64", False)]
    assert "2 rows have no key or one that is there already" in caplog.text


def test_json_and_parquet_by_a_key(spark: SparkSession, tmp_path: Path) -> None:
    lines = tmp_path / "users.jsonl"
    lines.write_text('{"name": "Ann", "id": 1}\n{"name": "Bob", "id": 2}\n')
    parquet = tmp_path / "users.parquet"
    spark.read.json(str(lines)).coalesce(1).write.parquet(str(parquet))

    for path in (lines, parquet):
        table = WatchedFile(str(path), "id", None, 60).current(spark)

        assert rows(table) == [("1", "Ann"), ("2", "Bob")]


@pytest.mark.parametrize(
    ("name", "text", "key", "columns", "message"),
    [
        ("f.csv", "k,a\n1,2\n", "id", None, "it has no column id"),
        ("f.csv", "k,name\n1,2\n", None, "nam string", "it has no column nam; did you mean name"),
        ("f.csv", "k,a\n1,x\n", None, "a int", "cannot be read"),
        ("f.json", '{"k": 1}', None, None, "have no order, so `key` must say"),
        ("f.txt", "x", None, None, "must be seen from its name, which ends in .csv"),
        ("missing.csv", None, None, None, "missing.csv cannot be read"),
    ],
)
def test_a_file_that_is_not_right_to_begin_with(
    spark: SparkSession, tmp_path: Path, name: str, text: str | None, key: str | None, columns: str | None, message: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)

    with pytest.raises(ValueError, match=message):
        WatchedFile(str(tmp_path / name), key, ddl(columns), 60).current(spark)


def test_a_file_is_read_again_when_it_has_changed_and_its_time_has_come(spark: SparkSession, tmp_path: Path) -> None:
    clock, file = Clock(), tmp_path / "f.csv"
    file.write_text("k,a\n1,2\n")
    watched = WatchedFile(str(file), None, None, 60, clock)
    first = watched.current(spark)

    clock.now = 60
    assert watched.current(spark) is first, "it has not changed"
    file.write_text("k,a\n1,3\n2,4\n")
    clock.now = 119
    assert watched.current(spark) is first, "its time has not come"
    clock.now = 120

    assert rows(watched.current(spark)) == [("1", 3), ("2", 4)]


def test_a_file_that_cannot_be_read_any_more_is_away(spark: SparkSession, tmp_path: Path) -> None:
    clock, file = Clock(), tmp_path / "f.csv"
    file.write_text("k,a\n1,2\n")
    watched = WatchedFile(str(file), None, None, 60, clock)
    first = watched.current(spark)
    clock.now = 60

    file.unlink()
    with pytest.raises(StoreAway, match=r"f.csv cannot be read: .*No such file"):
        watched.current(spark)
    for text in ("k,b\n1,2\n", "k,a\n1,x\n"):
        file.write_text(text)
        with pytest.raises(StoreAway, match=r"f\.csv cannot be read"):
            watched.current(spark)
    assert watched.last is first
    file.write_text("k,a\n1,9\n")
    os.utime(file, (1, 1))

    assert rows(watched.current(spark)) == [("1", 9)]
