"""Record batches: there and back, as other implementations write and read them, and whatever lies about itself."""

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.wire import batches
from millstream.wire.batches import (
    BatchHeader,
    Record,
    build_batch,
    build_empty_batch,
    check_crc,
    check_record_lengths,
    control_batch,
    iterate_headers,
    parse_header,
    read_marker,
    read_records,
    set_max_timestamp,
    stamp,
)
from millstream.wire.compression import Compression
from millstream.wire.errors import ErrorCode, KafkaError

optional_bytes = st.none() | st.binary(max_size=200)
records = st.lists(
    st.builds(
        Record,
        offset=st.just(0),
        timestamp=st.integers(0, 2**45),
        key=optional_bytes,
        value=optional_bytes,
        headers=st.lists(st.tuples(st.binary(max_size=5), optional_bytes), max_size=3).map(lambda found: found or ()),
    ),
    min_size=1,
    max_size=20,
).map(lambda items: [record._replace(offset=100 + index) for index, record in enumerate(items)])


@settings(deadline=None)
@given(records, st.sampled_from(Compression))
def test_there_and_back(items: list[Record], codec: Compression) -> None:
    data = build_batch(items, compression=codec, leader_epoch=3, producer_id=9, producer_epoch=1, base_sequence=5)
    header = parse_header(data)
    assert check_crc(data, 0, header)
    assert header.size_in_bytes == len(data)
    assert (header.base_offset, header.last_offset, header.next_offset) == (100, 99 + len(items), 100 + len(items))
    assert header.compression is codec
    assert header.max_timestamp == max(record.timestamp for record in items)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 1, 5)
    assert read_records(data) == items


@pytest.mark.parametrize("codec", Compression)
def test_another_implementation_reads_our_batches(codec: Compression) -> None:
    items = [Record(n, 1000 + n, b"k%d" % n, b"v" * n * 50, [(b"h", b"x")]) for n in range(50)]
    data = build_batch(items, compression=codec)
    other = DefaultRecordBatch(data)
    assert other.validate_crc()
    assert [(r.offset, r.timestamp, r.key, r.value) for r in other] == [item[:4] for item in items]


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_we_read_the_batches_of_another_implementation(codec: int) -> None:
    builder = DefaultRecordBatchBuilder(2, codec, True, 7, 1, 3, 1_000_000)
    for n in range(50):
        builder.append(n, 1000 + n, b"k%d" % n, b"v" * n * 50, [("h", b"x")])
    data = bytes(builder.build())
    header = parse_header(data)
    assert check_crc(data, 0, header)
    assert header.is_transactional
    assert [r.value for r in read_records(data)] == [b"v" * n * 50 for n in range(50)]


def test_stamping_changes_the_offset_and_leaves_the_crc() -> None:
    batch = bytearray(build_batch([Record(0, 5, b"k", b"v")]))
    before = parse_header(batch)
    stamp(batch, 1234, 7)
    header = parse_header(batch)
    assert (header.base_offset, header.partition_leader_epoch, header.crc) == (1234, 7, before.crc)
    assert check_crc(batch, 0, header)


def test_log_append_time_is_every_record_s_timestamp() -> None:
    batch = bytearray(build_batch([Record(0, 5, b"k", b"v"), Record(1, 9, b"k", b"v")]))
    set_max_timestamp(batch, 777, timestamp_type=1)
    header = parse_header(batch)
    assert header.timestamp_type == 1
    assert check_crc(batch, 0, header)
    assert [record.timestamp for record in read_records(batch)] == [777, 777]


def test_iterating_leaves_out_a_cut_batch() -> None:
    one = build_batch([Record(0, 5, b"k", b"v")])
    two = build_batch([Record(1, 5, b"k", b"v")])
    assert [position for position, _ in iterate_headers(one + two[:-1])] == [0]
    assert [header.base_offset for _, header in iterate_headers(one + two)] == [0, 1]


def test_iterating_over_nonsense_is_a_corrupt_message() -> None:
    with pytest.raises(KafkaError) as refused:
        list(iterate_headers(b"\x00" * 100))
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("commit", [True, False])
def test_markers(commit: bool) -> None:
    data = control_batch(producer_id=4, producer_epoch=2, commit=commit, coordinator_epoch=11, timestamp=99)
    header = parse_header(data)
    assert header.is_control
    assert header.is_transactional
    assert header.base_sequence == -1
    assert read_marker(data, 0, header) == (commit, 11)


def test_an_empty_batch_keeps_offsets_and_sequence() -> None:
    data = build_batch(
        [Record(10, 5, b"k", b"v"), Record(11, 6, b"k", b"v")], producer_id=1, producer_epoch=2, base_sequence=3
    )
    empty = build_empty_batch(parse_header(data))
    header = parse_header(empty)
    assert check_crc(empty, 0, header)
    assert (header.base_offset, header.last_offset, header.last_sequence) == (10, 11, 4)
    assert read_records(empty) == []


def test_a_delete_horizon_is_the_base_timestamp() -> None:
    items = [Record(0, 5_000, b"k", None), Record(3, 4_000, b"j", b"v")]
    data = build_batch(items, last_offset=9, delete_horizon_ms=90_000)
    header = parse_header(data)
    assert header.delete_horizon_ms == 90_000
    assert (header.last_offset, header.max_timestamp) == (9, 5_000)
    assert read_records(data) == items


def test_sequences_wrap() -> None:
    items = [Record(n, 0, None, None) for n in range(3)]
    data = build_batch(items, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2)
    assert parse_header(data).last_sequence == 0


def lying(data: bytes, **fields: int) -> bytes:
    header = parse_header(data)._replace(**fields)
    return batches.HEADER.pack(*header) + data[batches.HEADER_SIZE :]


@pytest.mark.parametrize("count", [-1, 0, 1, 3, 1000, 2**31 - 1])
def test_a_count_that_lies_is_an_invalid_record(count: int) -> None:
    data = lying(build_batch([Record(n, 5, b"key", b"value") for n in range(2)]), record_count=count)
    with pytest.raises(KafkaError) as refused:
        read_records(data)
    assert refused.value.code is ErrorCode.INVALID_RECORD


def outcome(data: bytes, header: BatchHeader) -> tuple[ErrorCode, list[Record]]:
    try:
        return ErrorCode.NONE, read_records(data, 0, header)
    except KafkaError as error:
        return error.code, []


@settings(deadline=None)
@given(data=st.binary(max_size=80), count=st.integers(0, 12))
def test_no_bytes_are_opened_as_something_they_are_not(data: bytes, count: int) -> None:
    header = BatchHeader(0, batches.HEADER_SIZE - 12 + len(data), 0, 2, 0, 0, count, 0, 0, -1, -1, -1, count)
    code, found = outcome(batches.HEADER.pack(*header) + data, header)
    assert code is ErrorCode.INVALID_RECORD or len(found) == count


@settings(deadline=None)
@given(records, st.integers(0, 25), st.integers(0, 5))
def test_the_quick_count_finds_what_it_looks_at(items: list[Record], count: int, cut: int) -> None:
    data = build_batch(items)
    payload = data[batches.HEADER_SIZE : len(data) - cut]
    if count == len(items) and cut == 0:
        check_record_lengths(payload, 0, count, 100)
    else:
        with pytest.raises(KafkaError) as refused:
            check_record_lengths(payload, 0, count, 100)
        assert refused.value.code is ErrorCode.INVALID_RECORD


def test_the_quick_count_is_bounded() -> None:
    data = build_batch([Record(n, 5, b"key", b"value") for n in range(100)])
    check_record_lengths(data, batches.HEADER_SIZE, 101, 10)
    with pytest.raises(KafkaError):
        check_record_lengths(data, batches.HEADER_SIZE, 9, 10)
