"""Growing files: each line once, over rotation, truncation, restarts and half-written lines."""

import json
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from millstream.pipelines.description.sources import TailSource
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.sources import tail_stream
from millstream.pipelines.spark.sources.tail import TailReader
from millstream.pipelines.spark.sources.tail_stream import Offset, TailStreamReader, read_part

Read = Callable[[DataFrame], list[Row]]


@pytest.fixture(autouse=True)
def _no_naps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail_stream, "_NAP", 0.0)


class Follower:
    """A query without Spark: keeps the offset, reads what is new."""

    def __init__(self, *patterns: Path, latest: bool = False) -> None:
        self.patterns = [str(pattern) for pattern in patterns]
        self._latest = latest
        self.stream = self._new()
        self.offset: Offset = self.stream.initialOffset()

    def _new(self) -> TailStreamReader:
        return TailStreamReader(self.patterns, self._latest, 1000)

    def restart(self) -> None:
        """What a new process knows is the offset, and that as JSON."""
        self.offset = json.loads(json.dumps(self.offset))
        self.stream = self._new()

    def lines(self, limit: int | None = None) -> list[str]:
        """The lines of the next micro-batch."""
        end = self.stream.latestOffset(self.offset, ReadAllAvailable() if limit is None else ReadMaxRows(limit))
        start, self.offset = self.offset, end
        return lines_between(start, end)


def lines_between(start: Offset, end: Offset) -> list[str]:
    parts = tail_stream.parts_between(start, end)
    return [value.decode() for part in parts for batch in read_part(part) for value in batch.column(0).to_pylist()]


def append(file: Path, text: str) -> None:
    with file.open("a") as out:
        out.write(text)


def test_each_line_once_and_only_when_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "app.log"
    append(file, "one\r\n\ntwo\nhal")
    follower = Follower(file)
    assert follower.lines() == ["one", "", "two"]
    assert follower.lines() == []
    append(file, "f\nthree\n")
    follower.restart()
    assert follower.lines() == ["half", "three"]


def test_nothing_new_is_the_same_offset(tmp_path: Path) -> None:
    file = tmp_path / "app.log"
    append(file, "one\n")
    follower = Follower(file)
    follower.lines()
    before = follower.offset
    append(file, "half a line")
    file.rename(tmp_path / "app.log.1")
    assert follower.stream.latestOffset(before, ReadAllAvailable()) is before


@pytest.mark.parametrize("pattern", ["app.log", "app.log*"])
def test_rotation_by_renaming(tmp_path: Path, pattern: str) -> None:
    file = tmp_path / "app.log"
    append(file, "1\n")
    follower = Follower(tmp_path / pattern)
    assert follower.lines() == ["1"]
    writer = file.open("a")
    writer.write("2\n")
    writer.flush()
    file.rename(tmp_path / "app.log.1")
    append(file, "4\n")
    # The writer still has the old file open for a while.
    writer.write("3\n")
    writer.close()
    follower.restart()
    assert sorted(follower.lines()) == ["2", "3", "4"]
    (tmp_path / "app.log.1").rename(tmp_path / "app.log.2")
    file.rename(tmp_path / "app.log.1")
    append(tmp_path / "app.log.1", "5\n")
    append(file, "6\n")
    assert sorted(follower.lines()) == ["5", "6"]
    (tmp_path / "app.log.2").unlink()
    append(file, "7\n")
    assert follower.lines() == ["7"]
    assert len(follower.offset["files"]) == 2


@pytest.mark.parametrize("after", ["new 1\n", "new, and longer than all that was there before\nnew 2\n"])
def test_a_file_that_is_cut_off_begins_anew(tmp_path: Path, after: str, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "app.log"
    append(file, "old 1\nold 2\n")
    follower = Follower(file)
    assert follower.lines() == ["old 1", "old 2"]
    os.truncate(file, 0)
    append(file, after)
    with caplog.at_level(logging.WARNING):
        assert follower.lines() == after.splitlines()
    assert "was cut off or replaced" in caplog.text
    append(file, "more\n")
    assert follower.lines() == ["more"]


def test_a_file_that_is_cut_off_in_the_middle_begins_anew(tmp_path: Path) -> None:
    file = tmp_path / "app.log"
    append(file, "".join(f"line {number}\n" for number in range(100)))
    follower = Follower(file)
    assert len(follower.lines()) == 100
    os.truncate(file, 700)
    assert follower.lines()[0] == "line 0"


def test_from_the_end(tmp_path: Path) -> None:
    file = tmp_path / "app.log"
    append(file, "old\nhal")
    follower = Follower(tmp_path / "*.log", latest=True)
    append(file, "f\n")
    append(tmp_path / "other.log", "all of a new file\n")
    assert sorted(follower.lines()) == ["all of a new file", "half"]


def test_limits_are_shared_by_the_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        append(tmp_path / f"{name}.log", "".join(f"{name}{number}\n" for number in range(5)))
    follower = Follower(tmp_path / "*.log")
    assert follower.lines(4) == ["a0", "a1", "b0", "b1"]
    assert follower.lines(100) == ["a2", "a3", "a4", "b2", "b3", "b4"]


def test_several_patterns_find_a_file_once_and_no_compressed_ones(tmp_path: Path) -> None:
    append(tmp_path / "a.log", "a\n")
    append(tmp_path / "b.log.gz", "b\n")
    (tmp_path / "c.log").mkdir()
    assert Follower(tmp_path / "*.log", tmp_path / "a.*", tmp_path / "*.gz").lines() == ["a"]


def test_lines_that_are_too_long_come_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail_stream, "LONGEST_LINE", 10)
    monkeypatch.setattr(tail_stream, "_BLOCK", 4)
    file = tmp_path / "app.log"
    append(file, "short\n" + "x" * 25)
    follower = Follower(file)
    assert follower.lines() == ["short", "x" * 10, "x" * 10]
    append(file, "\nshort\n")
    assert follower.lines() == ["xxxxx", "short"]


def test_a_batch_is_the_same_after_rotation(tmp_path: Path) -> None:
    file = tmp_path / "app.log"
    append(file, "1\n2\n")
    follower = Follower(file)
    start = follower.offset
    end = follower.stream.latestOffset(start, ReadAllAvailable())
    append(file, "3\n")
    file.rename(tmp_path / "app.log.1")
    append(file, "4\n")
    assert lines_between(start, end) == ["1", "2"]


def test_a_batch_whose_file_is_gone_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "app.log"
    append(file, "1\n2\n")
    follower = Follower(file)
    start = follower.offset
    end = follower.stream.latestOffset(start, ReadAllAvailable())
    kept = tmp_path / "kept"
    shutil.copy(file, kept)
    os.truncate(file, 0)
    append(file, "something else\n")
    with pytest.raises(EOFError, match="was replaced"):
        lines_between(start, end)
    file.unlink()
    with pytest.raises(FileNotFoundError, match="is gone, its lines up to byte 4"):
        lines_between(start, end)


def test_a_run_that_ends_reads_what_was_there_when_it_began(tmp_path: Path) -> None:
    file = tmp_path / "app.log"
    append(file, "1\n2\n3\n")
    follower = Follower(tmp_path / "*.log")
    follower.stream.prepareForTriggerAvailableNow()
    append(file, "4\n")
    append(tmp_path / "new.log", "5\n")
    assert follower.lines(2) == ["1", "2"]
    assert follower.lines(2) == ["3"]
    assert follower.lines(2) == []


def reader(context: Context, **fields: Any) -> TailReader:
    return TailReader(TailSource(**fields), "logs", context)


def test_a_stream_of_spark(context: Context, read: Read, tmp_path: Path) -> None:
    file = tmp_path / "app.log"
    file.write_bytes(b"one\n\xff\ntwo\n")
    source = reader(context, tail=str(tmp_path / "*.log"))
    rows = read(source.rows(source.raw_stream()))
    assert [(row["value"], row["file"], row["position"]) for row in rows if row["_error"] is None] == [
        ("one", str(file), 0), ("two", str(file), 6),
    ]  # fmt: skip
    assert [row["_error"]["error"] for row in rows if row["_error"] is not None] == ["not-utf8"]
    assert (rows[0]["_origin"]["topic"], json.loads(rows[0]["_origin"]["value"])["value"]) == ("logs", "one")
    append(file, "three\n")
    assert [row["value"] for row in read(source.rows(source.raw_stream(5)))] == ["three"]
    stream = TailStreamReader([str(file)], False, 2)
    start = stream.initialOffset()
    assert json.loads(source.initial_offset() or "") == start
    assert reader(context, tail=str(file), start="latest").initial_offset() is None
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    again = source.raw_batch(json.dumps(start), json.dumps(end))
    assert [row["position"] for row in source.rows(again).collect()] == [0, 4]
