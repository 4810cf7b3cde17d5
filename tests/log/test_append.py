"""What is refused on the way into the log, and with which error; what is changed, and that nothing else is."""

from pathlib import Path

import pytest

from log.harness import START_MS, Harness, batch, keyed, records_of
from millstream.log.append import AppendOrigin, RecordValidationError
from millstream.log.config import LogConfig
from millstream.wire import batches
from millstream.wire.batches import Record, build_batch, check_crc, parse_header, read_records
from millstream.wire.compression import Compression
from millstream.wire.errors import ErrorCode, KafkaError

DAY = 86_400_000


def changed(data: bytes, **fields: int) -> bytes:
    """The batch with other header fields and a CRC that matches."""
    changed_batch = bytearray(batches.HEADER.pack(*parse_header(data)._replace(**fields)) + data[61:])
    crc = batches.compute_crc(changed_batch, 0, len(changed_batch))
    return batches.HEADER.pack(*parse_header(changed_batch)._replace(crc=crc)) + data[61:]


def refused(harness: Harness, data: bytes) -> ErrorCode:
    before = (harness.log.log_end_offset, harness.log.size)
    with pytest.raises(KafkaError) as error:
        harness.log.append(data)
    assert (harness.log.log_end_offset, harness.log.size) == before
    return error.value.code


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


GOOD = batch(b"one", b"two", b"three")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (GOOD[:40], ErrorCode.INVALID_RECORD),
        (GOOD[:-1], ErrorCode.INVALID_RECORD),
        (GOOD + GOOD, ErrorCode.INVALID_RECORD),
        (b"\x00" * 100, ErrorCode.CORRUPT_MESSAGE),
        (GOOD[:16] + b"\x03" + GOOD[17:], ErrorCode.CORRUPT_MESSAGE),
        (GOOD[:16] + b"\x01" + GOOD[17:], ErrorCode.INVALID_RECORD),
        (GOOD[:16] + b"\x00" + GOOD[17:], ErrorCode.INVALID_RECORD),
        (GOOD[:-1] + b"x", ErrorCode.CORRUPT_MESSAGE),
        (GOOD[:8] + b"\x00\x00\x00\x10" + GOOD[12:28], ErrorCode.CORRUPT_MESSAGE),
        (changed(GOOD, base_offset=5), ErrorCode.INVALID_RECORD),
        (changed(GOOD, record_count=2), ErrorCode.INVALID_RECORD),
        (changed(GOOD, record_count=0), ErrorCode.INVALID_RECORD),
        (changed(GOOD, last_offset_delta=-1), ErrorCode.INVALID_RECORD),
        (changed(GOOD, record_count=4, last_offset_delta=3), ErrorCode.INVALID_RECORD),
        (changed(GOOD, record_count=2, last_offset_delta=1), ErrorCode.INVALID_RECORD),
        (changed(GOOD, record_count=10**6, last_offset_delta=10**6 - 1), ErrorCode.INVALID_RECORD),
        (changed(GOOD, attributes=batches.CONTROL_BIT), ErrorCode.INVALID_RECORD),
        (changed(GOOD, producer_id=1, producer_epoch=0), ErrorCode.INVALID_RECORD),
        (changed(GOOD, attributes=Compression.GZIP), ErrorCode.CORRUPT_MESSAGE),
        (changed(GOOD, attributes=7), ErrorCode.CORRUPT_MESSAGE),
        (changed(GOOD, max_timestamp=START_MS + DAY), ErrorCode.NONE),
    ],
)
def test_what_is_wrong_with_a_batch(harness: Harness, data: bytes, code: ErrorCode) -> None:
    if code is ErrorCode.NONE:
        # A max timestamp that lies is put right when it is looked at.
        harness.log.append(data)
        assert parse_header(harness.log.read(0, 10_000).read_all()).max_timestamp == START_MS
    else:
        assert refused(harness, data) is code


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD])
def test_a_packed_batch_that_lies_about_its_count(harness: Harness, codec: Compression) -> None:
    packed = batch(b"one", b"two", b"three", compression=codec)
    assert refused(harness, changed(packed, record_count=2, last_offset_delta=1)) is ErrorCode.INVALID_RECORD
    assert harness.log.append(packed).last_offset == 2


def test_bytes_behind_the_batch_that_are_no_batch_are_cut_off(harness: Harness) -> None:
    harness.log.append(GOOD + b"\x00" * 10)
    assert harness.log.size == len(GOOD)


def test_sizes(tmp_path: Path) -> None:
    harness = Harness(tmp_path, LogConfig(max_message_bytes=200, segment_bytes=150))
    assert refused(harness, batch(b"x" * 200)) is ErrorCode.MESSAGE_TOO_LARGE
    assert refused(harness, batch(b"x" * 100)) is ErrorCode.RECORD_LIST_TOO_LARGE
    assert harness.log.append(batch(b"x" * 20)).base_offset == 0


def test_timestamps_out_of_bounds_name_the_records(tmp_path: Path) -> None:
    config = LogConfig(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=2000)
    harness = Harness(tmp_path, config)
    stamps = (START_MS, START_MS - 1001, START_MS + 2000, START_MS + 2001, -1)
    data = build_batch([Record(n, stamp, None, b"") for n, stamp in enumerate(stamps)])
    with pytest.raises(RecordValidationError) as error:
        harness.log.append(data)
    assert error.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [entry.batch_index for entry in error.value.record_errors] == [1, 3]


def test_a_compacted_topic_wants_keys(tmp_path: Path) -> None:
    harness = Harness(tmp_path, LogConfig(cleanup_policy=frozenset(("compact",))))
    data = build_batch([Record(0, START_MS, b"k", b"v"), Record(1, START_MS, None, b"v")], compression=Compression.LZ4)
    with pytest.raises(RecordValidationError) as error:
        harness.log.append(data)
    assert error.value.code is ErrorCode.INVALID_RECORD
    assert [entry.batch_index for entry in error.value.record_errors] == [1]
    assert harness.log.append(keyed((b"k", b"v"))).base_offset == 0


def test_records_whose_offsets_do_not_count_up_are_put_in_order(tmp_path: Path) -> None:
    harness = Harness(tmp_path, LogConfig(cleanup_policy=frozenset(("compact",))))
    data = build_batch([Record(0, START_MS, b"a", b"1"), Record(0, START_MS, b"b", b"2")], last_offset=1)
    harness.log.append(data)
    assert [(record.offset, record.key) for record in records_of(harness.log)] == [(0, b"a"), (1, b"b")]


def test_a_batch_is_stored_as_it_came(harness: Harness) -> None:
    harness.append(b"first")
    harness.log.append(GOOD, leader_epoch=4)
    stored = harness.log.read(1, 10_000).read_all()
    assert stored[16:] == GOOD[16:]
    header = parse_header(stored)
    assert (header.base_offset, header.partition_leader_epoch) == (1, 4)


def test_log_append_time(tmp_path: Path) -> None:
    harness = Harness(tmp_path, LogConfig(message_timestamp_type="LogAppendTime"))
    info = harness.log.append(batch(b"x", now=START_MS - DAY * 400))
    assert info.log_append_time == info.max_timestamp == START_MS
    stored = harness.log.read(0, 10_000).read_all()
    assert check_crc(stored, 0, parse_header(stored))
    assert read_records(stored)[0].timestamp == START_MS
    data = build_batch([Record(0, START_MS, None, b"x")], log_append_time=START_MS)
    assert refused(harness, data) is ErrorCode.INVALID_TIMESTAMP


def test_create_time_answers_no_append_time(harness: Harness) -> None:
    assert harness.log.append(GOOD).log_append_time == -1


@pytest.mark.parametrize("source", Compression)
@pytest.mark.parametrize("target", ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_the_topic_s_codec(tmp_path: Path, source: Compression, target: str) -> None:
    harness = Harness(tmp_path, LogConfig(compression_type=target))
    data = batch(b"one" * 100, b"two", compression=source, producer_id=1, producer_epoch=0, base_sequence=0)
    harness.log.append(data)
    stored = harness.log.read(0, 10_000).read_all()
    header = parse_header(stored)
    expected = {"producer": source.name, "uncompressed": "NONE"}.get(target, target.upper())
    assert header.compression.name == expected
    assert check_crc(stored, 0, header)
    assert (header.producer_id, header.base_sequence) == (1, 0)
    assert [record.value for record in read_records(stored)] == [b"one" * 100, b"two"]


def test_a_coordinator_s_batch_need_not_begin_at_zero(harness: Harness) -> None:
    harness.log.append(changed(GOOD, base_offset=77), origin=AppendOrigin.COORDINATOR)
    assert harness.log.log_end_offset == 3
