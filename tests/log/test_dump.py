"""Dumps of log files: everything that is in them, and every kind of damage at its place."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from crc32c import crc32c

from millstream.log.dump import Overlap, dump, files_in, is_known
from millstream.log.dump_items import (
    AbortedEntry,
    BatchEntry,
    CheckpointEntry,
    EpochEntry,
    Item,
    OffsetIndexEntry,
    Problem,
    ProducerSnapshotEntry,
    PropertyEntry,
    RecordEntry,
    TimeIndexEntry,
)
from millstream.wire.batches import Record, build_batch, build_empty_batch, control_batch, parse_header
from millstream.wire.compression import Compression

SEGMENT = "00000000000000000010.log"


def records(first: int, count: int, timestamp: int = 1000) -> list[Record]:
    return [
        Record(first + n, timestamp + n, b"k%d" % n, None if n == 2 else b"v" * 20, [(b"h", None)])
        for n in range(count)
    ]


def good_batches() -> list[bytes]:
    return [
        build_batch(records(10, 5), compression=Compression.GZIP, leader_epoch=0),
        build_batch(
            records(15, 2), leader_epoch=1, producer_id=7, producer_epoch=1, base_sequence=3, transactional=True
        ),
        control_batch(
            producer_id=7,
            producer_epoch=1,
            commit=False,
            coordinator_epoch=2,
            timestamp=1100,
            base_offset=17,
            leader_epoch=1,
        ),
        build_batch(records(20, 3, 1200), leader_epoch=1, log_append_time=1300),
    ]


def write_segment(folder: Path, *batches: bytes, name: str = SEGMENT) -> Path:
    path = folder / name
    path.write_bytes(b"".join(batches))
    return path


def items(path: Path, **options: bool) -> list[Item]:
    return list(dump(path, **options).items)


def problems(path: Path, **options: bool) -> list[Problem]:
    return [item for item in items(path, **options) if isinstance(item, Problem)]


def the_problem(path: Path, **options: bool) -> tuple[int | None, str]:
    (problem,) = problems(path, **options)
    return problem.position, problem.text


def test_a_sound_segment_is_shown_batch_by_batch(tmp_path: Path) -> None:
    batches = good_batches()
    path = write_segment(tmp_path, *batches)
    opened = dump(path)
    assert (opened.kind, opened.size) == ("segment", sum(map(len, batches)))
    found = list(opened.items)
    assert all(isinstance(item, BatchEntry) and item.crc_ok for item in found)
    first, data, marker, appended = (item for item in found if isinstance(item, BatchEntry))
    assert (first.position, first.base_offset, first.last_offset, first.record_count) == (0, 10, 14, 5)
    assert (first.compression, first.size, first.max_timestamp, first.producer_id) == (
        "gzip",
        len(batches[0]),
        1004,
        -1,
    )
    assert data.position == len(batches[0])
    assert (data.producer_id, data.producer_epoch, data.base_sequence, data.last_sequence) == (7, 1, 3, 4)
    assert (data.transactional, data.control, data.leader_epoch) == (True, None, 1)
    assert marker.control == "abort"
    assert (appended.timestamp_type, appended.max_timestamp) == ("LogAppendTime", 1300)


def test_records_come_behind_their_batch(tmp_path: Path) -> None:
    path = write_segment(tmp_path, *good_batches())
    found = items(path, records=True)
    assert isinstance(found[0], BatchEntry)
    assert found[1] == RecordEntry(0, 10, 1000, b"k0", b"v" * 20, [(b"h", None)])
    assert [item.offset for item in found if isinstance(item, RecordEntry)] == [
        10,
        11,
        12,
        13,
        14,
        15,
        16,
        17,
        20,
        21,
        22,
    ]
    assert [item.value for item in found[1:6] if isinstance(item, RecordEntry)][2] is None


@pytest.mark.parametrize("codec", list(Compression))
def test_every_codec_is_opened(tmp_path: Path, codec: Compression) -> None:
    path = write_segment(tmp_path, build_batch(records(10, 3), compression=codec))
    (batch, *rest) = items(path, records=True)
    assert isinstance(batch, BatchEntry)
    assert batch.compression == codec.name.lower()
    assert len(rest) == 3


def test_an_empty_segment_and_a_compacted_batch_are_sound(tmp_path: Path) -> None:
    assert items(write_segment(tmp_path)) == []
    empty = build_empty_batch(parse_header(good_batches()[1]))
    path = write_segment(tmp_path, empty)
    assert problems(path) == []


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 0xFF]) + data[position + 1 :]


def with_header(batch: bytes, at: int, layout: str, value: int) -> bytes:
    """The batch with one field of its header changed, and a CRC that is right again."""
    changed = bytearray(batch)
    struct.pack_into(layout, changed, at, value)
    struct.pack_into(">I", changed, 17, crc32c(bytes(changed[21:])))
    return bytes(changed)


def test_a_bad_crc_is_found_and_the_rest_is_read(tmp_path: Path) -> None:
    first, second, *_ = good_batches()
    path = write_segment(tmp_path, first, flipped(second, 70))
    assert the_problem(path) == (len(first), "bad CRC: the batch at offset 15 is damaged")
    assert [item.crc_ok for item in items(path) if isinstance(item, BatchEntry)] == [True, False]
    assert the_problem(path, shallow=True)[0] == len(first)


@pytest.mark.parametrize("kept", [9, 12, 17, 40, 60, 80])
def test_a_torn_tail_is_found(tmp_path: Path, kept: int) -> None:
    first, second, *_ = good_batches()
    path = write_segment(tmp_path, first, second[:kept])
    position, text = the_problem(path)
    assert position == len(first)
    assert "torn" in text
    assert f"{kept} bytes are left" in text


def test_zeros_at_the_end_are_named(tmp_path: Path) -> None:
    (first, *_) = good_batches()
    position, text = the_problem(write_segment(tmp_path, first, bytes(500)))
    assert (position, text[:18]) == (len(first), "500 bytes of zeros")


def test_room_for_the_next_batches_is_no_problem(tmp_path: Path) -> None:
    big = build_batch([Record(10, 5, b"k", bytes(1 << 20))])
    path = write_segment(tmp_path, big, bytes(1000))
    assert [type(item) for item in items(path, shallow=True)] == [BatchEntry]
    path.write_bytes(big + bytes(1 << 20))
    assert the_problem(path, shallow=True)[0] == len(big)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda batch: batch[:8] + struct.pack(">i", 3) + batch[12:], "says it is 3 bytes long"),
        (lambda batch: batch[:8] + struct.pack(">i", -1) + batch[12:], "says it is -1 bytes long"),
        (lambda batch: batch[:8] + struct.pack(">i", 1 << 30) + batch[12:], "torn tail"),
        (lambda batch: batch[:16] + b"\x09" + batch[17:], "no batch begins here (format 9)"),
        (lambda batch: with_header(batch, 57, ">i", 4), "lying records"),
        (lambda batch: with_header(batch, 57, ">i", 1), "lying records"),
        (lambda batch: with_header(batch, 57, ">i", -5), "lying counts"),
        (lambda batch: with_header(batch, 23, ">i", -1), "lying counts"),
        (lambda batch: with_header(batch, 23, ">i", 0), "offsets out of order: a record has the offset 16"),
        (lambda batch: with_header(batch, 21, ">h", 7), "lying records: unknown compression codec 7"),
        (lambda batch: with_header(batch, 21, ">h", 4), "lying records"),
    ],
)
def test_a_batch_that_lies_is_found(tmp_path: Path, change: Callable[[bytes], bytes], words: str) -> None:
    first, second, *_ = good_batches()
    position, text = the_problem(write_segment(tmp_path, first, change(second)))
    assert position == len(first)
    assert words in text


def test_offsets_and_epochs_that_go_back_are_found(tmp_path: Path) -> None:
    first, second, *_ = good_batches()
    behind = build_batch(records(12, 1), leader_epoch=0)
    position, text = the_problem(write_segment(tmp_path, first, behind))
    assert (position, text) == (
        len(first),
        "offsets out of order: the batch begins with 12, and the batch before it ends with 14",
    )
    early = build_batch(records(3, 1))
    assert "the segment begins with 10 by its name" in the_problem(write_segment(tmp_path, early))[1]
    old = build_batch(records(30, 1), leader_epoch=0)
    assert "leader epoch descends from 1 to 0" in the_problem(write_segment(tmp_path, second, old))[1]


def test_messages_of_old_formats_are_named(tmp_path: Path) -> None:
    body = struct.pack(">IbbqIi", 0, 1, 2, 1234, 0xFFFFFFFF, -1)
    old = struct.pack(">qi", 10, len(body)) + body
    found = items(write_segment(tmp_path, old, build_batch(records(11, 1))))
    assert [(item.magic, item.base_offset, item.crc_ok) for item in found if isinstance(item, BatchEntry)] == [
        (1, 10, None),
        (2, 11, True),
    ]
    assert isinstance(found[0], BatchEntry)
    assert (found[0].compression, found[0].max_timestamp) == ("snappy", 1234)


# --- indexes


def write_index(folder: Path, suffix: str, layout: str, *entries: tuple[int, ...], padding: int = 0) -> Path:
    path = folder / f"00000000000000000010.{suffix}"
    path.write_bytes(b"".join(struct.pack(layout, *entry) for entry in entries) + bytes(padding))
    return path


def test_a_sound_offset_index(tmp_path: Path) -> None:
    batches = good_batches()
    write_segment(tmp_path, *batches)
    at = [len(batches[0]), len(batches[0]) + len(batches[1])]
    path = write_index(tmp_path, "index", ">ii", (6, at[0]), (7, at[1]), padding=80)
    assert items(path) == [OffsetIndexEntry(0, 16, at[0]), OffsetIndexEntry(8, 17, at[1])]


@pytest.mark.parametrize(
    ("entries", "position", "words"),
    [
        ([(6, 3)], 0, "points nowhere: offset 16 at 3 of the segment, where no batch begins"),
        ([(6, 100_000)], 0, "points nowhere: offset 16 at 100000 of the segment, behind its end"),
        ([(-3, 0)], 0, "offset 7 is said to be at 0, where the batch begins with 10"),
    ],
)
def test_an_offset_index_that_points_nowhere(
    tmp_path: Path, entries: list[tuple[int, int]], position: int, words: str
) -> None:
    write_segment(tmp_path, *good_batches())
    assert the_problem(write_index(tmp_path, "index", ">ii", *entries)) == (position, words)


def test_an_offset_index_that_does_not_increase(tmp_path: Path) -> None:
    path = write_index(tmp_path, "index", ">ii", (6, 200), (6, 300), (7, 300))
    assert [problem.position for problem in problems(path)] == [8, 16]
    assert all("not increasing" in problem.text for problem in problems(path))


def test_an_index_with_a_torn_tail(tmp_path: Path) -> None:
    path = write_index(tmp_path, "index", ">ii", (6, 200))
    path.write_bytes(path.read_bytes() + b"\x01\x02")
    assert the_problem(path) == (8, "torn tail: 2 bytes, and an entry has 8")


def test_a_time_index(tmp_path: Path) -> None:
    write_segment(tmp_path, *good_batches())
    path = write_index(tmp_path, "timeindex", ">qi", (1004, 4), (1100, 7), (1300, 12))
    assert items(path) == [TimeIndexEntry(0, 1004, 14), TimeIndexEntry(12, 1100, 17), TimeIndexEntry(24, 1300, 22)]
    wrong = write_index(tmp_path, "timeindex", ">qi", (1003, 4))
    assert the_problem(wrong) == (0, "the greatest timestamp up to offset 14 is 1004, not 1003")
    nowhere = write_index(tmp_path, "timeindex", ">qi", (1004, 4), (2000, 50))
    assert the_problem(nowhere) == (12, "points nowhere: offset 60, and the segment ends with 22")
    (tmp_path / SEGMENT).unlink()
    descending = write_index(tmp_path, "timeindex", ">qi", (1004, 4), (1000, 7))
    assert "not increasing" in the_problem(descending)[1]


def test_a_transaction_index(tmp_path: Path) -> None:
    path = write_index(tmp_path, "txnindex", ">hqqqq", (0, 7, 15, 17, 15), (0, 8, 18, 19, 20))
    assert items(path) == [AbortedEntry(0, 7, 15, 17, 15), AbortedEntry(34, 8, 18, 19, 20)]
    bad = write_index(tmp_path, "txnindex", ">hqqqq", (0, 7, 17, 15, 15), (3, 8, 5, 9, 9), (0, 9, 11, 9, 9))
    found = {(problem.position, problem.text.split(":")[0]) for problem in problems(bad)}
    assert found == {
        (0, "a transaction from offset 17 back to 15"),
        (34, "unknown version 3"),
        (34, "points nowhere"),
        (34, "not increasing"),
        (68, "a transaction from offset 11 back to 9"),
        (68, "points nowhere"),
        (68, "not increasing"),
    }


# --- state


def snapshot(*entries: tuple[int, ...], count: int | None = None) -> bytes:
    covered = struct.pack(">i", len(entries) if count is None else count)
    covered += b"".join(struct.pack(">qhiqiqiq", *entry) for entry in entries)
    return struct.pack(">hI", 1, crc32c(covered)) + covered


def test_a_producer_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000010.snapshot"
    path.write_bytes(snapshot((7, 1, 4, 16, 1, 1001, 2, -1), (8, 0, 0, 9, 0, 1000, -1, 9)))
    assert items(path) == [
        ProducerSnapshotEntry(10, 7, 1, 4, 16, 1, 1001, 2, None),
        ProducerSnapshotEntry(56, 8, 0, 0, 9, 0, 1000, -1, 9),
    ]
    sound = path.read_bytes()
    for data, words in (
        (sound[:5], "torn"),
        (b"\x00\x09" + sound[2:], "unknown version 9"),
        (flipped(sound, 30), "bad CRC"),
        (snapshot((7, 1, 4, 16, 1, 1001, 2, -1), count=3), "lying count: 3 producers"),
        (snapshot((7, 1, 4, 16, 1, 1001, 2, -1), (7, 1, 4, 16, 1, 1001, 2, -1)), "producer 7 is there twice"),
    ):
        path.write_bytes(data)
        assert words in the_problem(path)[1]


def test_leader_epochs(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text("0\n2\n0 0\n3 17\n")
    assert items(path) == [EpochEntry(0, 0), EpochEntry(3, 17)]
    for text, position, words in (
        ("1\n0\n", 0, "unknown version '1'"),
        ("0\nmany\n", 2, "'many' is no count of entries"),
        ("0\n5\n0 0\n", 2, "lying count: 5 entries are said, and there are 1"),
        ("0\n2\n0 0\nx\n", 8, "no entry: 'x'"),
        ("0\n2\n3 5\n2 9\n", 8, "not increasing: epoch 2 from 9 behind epoch 3 from 5"),
    ):
        path.write_text(text)
        assert the_problem(path) == (position, words)


def test_offset_checkpoints(tmp_path: Path) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    path.write_text("0\n2\norders 0 17\norders 1 4\n")
    assert items(path) == [CheckpointEntry("orders", 0, 17), CheckpointEntry("orders", 1, 4)]
    path.write_text("0\n2\norders 0 17\norders 0 4\n")
    assert the_problem(path) == (16, "orders-0 is there twice")
    path.write_text("0\n1\norders zero 4\n")
    assert "no entry" in the_problem(path)[1]
    path.write_text("")
    assert items(path) == []


def test_property_files(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    path.write_text("#comment\nversion=1\nnode.id=1\n")
    assert items(path) == [PropertyEntry("version", "1"), PropertyEntry("node.id", "1")]
    (tmp_path / "partition.metadata").write_text("version: 0\ntopic_id: abc")
    assert items(tmp_path / "partition.metadata")[1] == PropertyEntry("topic_id", "abc")
    path.write_text("version=1\nnonsense\n")
    assert the_problem(path) == (10, "no property: 'nonsense'")


# --- folders


def test_files_are_told_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    write_segment(tmp_path / "orders-0")
    for name in ("meta.properties", ".lock", "notes.txt", "00000000000000000007.log.deleted"):
        (tmp_path / name).write_bytes(b"")
    found = [path.name for path in files_in(tmp_path)]
    assert found == ["00000000000000000007.log.deleted", "meta.properties", SEGMENT]
    assert is_known(Path("00000000000000000042-0000000003.checkpoint"))
    with pytest.raises(ValueError, match="not a file of a log"):
        dump(tmp_path / "notes.txt")


def test_segments_that_run_into_each_other_are_found() -> None:
    overlap = Overlap()
    assert overlap.check(Path("t-0/00000000000000000000.log"), 0, 17) is None
    problem = overlap.check(Path("t-0/00000000000000000010.log"), 10, 20)
    assert problem is not None
    assert problem.text == "offsets begin at 10, but 00000000000000000000.log goes to 17 already"
    assert overlap.check(Path("t-1/00000000000000000000.log"), 0, 5) is None
