"""Record batches of message format v2 (magic 2): read a header, open the records, build a batch. No I/O, no clock.

A batch on the wire and on disk, big-endian:

    base offset int64 | batch length int32 | partition leader epoch int32 | magic int8 | crc uint32
    attributes int16 | last offset delta int32 | base timestamp int64 | max timestamp int64
    producer id int64 | producer epoch int16 | base sequence int32 | record count int32 | records

The batch length counts everything behind itself; the CRC (Castagnoli) covers everything from the attributes on. So the
base offset and the leader epoch can be written into a batch that came from a client without opening it. Attributes:
bits 0-2 codec, 3 timestamp type (1 = LogAppendTime), 4 transactional, 5 control, 6 the base timestamp is the delete
horizon.

A record, all numbers zigzag varints: length | attributes int8 | timestamp delta | offset delta | key length (-1 = null)
| key | value length | value | header count | (key length | key | value length | value)*.

Whatever a batch says about itself is checked against its bytes before it is believed: a length, a count or a varint
that does not fit is INVALID_RECORD or CORRUPT_MESSAGE, never an IndexError.
"""

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from millstream.wire.compression import MAX_DECOMPRESSED_BYTES, Compression, compress, decompress
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.varints import decode_varint, encode_varint

HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = HEADER.size
LOG_OVERHEAD: Final = 12
MAGIC: Final = 2
MAGIC_OFFSET: Final = 16
CRC_OFFSET: Final = 17
ATTRIBUTES_OFFSET: Final = 21

TIMESTAMP_TYPE_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40
CODEC_MASK: Final = 0x07

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1

# A record of nothing: length, attributes, two deltas, null key, null value, no headers.
MIN_RECORD_SIZE: Final = 7
_MIN_LENGTH_FIELD: Final = 2 * (MIN_RECORD_SIZE - 1)
MAX_SEQUENCE: Final = 0x7FFFFFFF

_CODECS: Final = (Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD)
_PREFIX: Final = Struct(">qii")
_AFTER_CRC: Final = Struct(">hiqqqhii")
_CRC: Final = Struct(">I")
_CONTROL_KEY: Final = Struct(">hh")
_END_TXN_MARKER: Final = Struct(">hi")
_ABORT: Final = 0
_COMMIT: Final = 1


class BatchHeader(NamedTuple):
    """The 61 bytes before the records. Cheap: one unpack."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def compression(self) -> Compression:
        codec = self.attributes & CODEC_MASK
        if codec >= len(_CODECS):
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"unknown compression codec {codec}")
        return _CODECS[codec]

    @property
    def timestamp_type(self) -> int:
        """0 for CreateTime, 1 for LogAppendTime."""
        return 1 if self.attributes & TIMESTAMP_TYPE_BIT else 0

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_delete_horizon(self) -> bool:
        return bool(self.attributes & DELETE_HORIZON_BIT)

    @property
    def delete_horizon_ms(self) -> int | None:
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def size_in_bytes(self) -> int:
        return LOG_OVERHEAD + self.batch_length


class Record(NamedTuple):
    """One record. `offset` and `timestamp` are absolute; header values may be null."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[bytes, bytes | None]] = ()


class EndTxnMarker(NamedTuple):
    """What a control batch of a transaction says."""

    commit: bool
    coordinator_epoch: int


def increment_sequence(sequence: int, by: int) -> int:
    """Sequences wrap from 2^31 - 1 to 0."""
    return (sequence + by) & MAX_SEQUENCE


def parse_header(data: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """The header at `position`. Raises CORRUPT_MESSAGE if the bytes do not reach that far."""
    if len(data) - position < HEADER_SIZE:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "the record batch is shorter than its header")
    return BatchHeader._make(HEADER.unpack_from(data, position))


def iterate_headers(data: bytes | bytearray | memoryview) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each whole batch; a cut-off batch at the end is left out, as a consumer leaves it."""
    position, end = 0, len(data)
    while end - position >= HEADER_SIZE:
        header = BatchHeader._make(HEADER.unpack_from(data, position))
        size = header.batch_length + LOG_OVERHEAD
        if size < HEADER_SIZE:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a record batch says it is {size} bytes long")
        if position + size > end:
            return
        yield position, header
        position += size


def compute_crc(data: bytes | bytearray | memoryview, position: int, size: int) -> int:
    """The CRC of the batch of `size` bytes at `position`."""
    return crc32c(memoryview(data)[position + ATTRIBUTES_OFFSET : position + size])


def check_crc(data: bytes | bytearray | memoryview, position: int, header: BatchHeader) -> bool:
    return compute_crc(data, position, header.size_in_bytes) == header.crc


def stamp(batch: bytearray | memoryview, base_offset: int, leader_epoch: int) -> None:
    """Write the offset and the leader epoch into a batch: its CRC does not cover them."""
    _PREFIX.pack_into(batch, 0, base_offset, len(batch) - LOG_OVERHEAD, leader_epoch)


def set_max_timestamp(batch: bytearray, max_timestamp: int, timestamp_type: int) -> None:
    """Set the max timestamp and the timestamp type of a batch, and its CRC to match."""
    header = parse_header(batch)
    attributes = header.attributes & ~TIMESTAMP_TYPE_BIT
    if timestamp_type:
        attributes |= TIMESTAMP_TYPE_BIT
    _AFTER_CRC.pack_into(batch, ATTRIBUTES_OFFSET, attributes, *header[6:8], max_timestamp, *header[9:])
    _CRC.pack_into(batch, CRC_OFFSET, compute_crc(batch, 0, len(batch)))


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, reason)


# --- opening the records


def record_bytes(data: bytes | bytearray | memoryview, position: int, header: BatchHeader, limit: int) -> bytes:
    """The records of the batch at `position`, unpacked, at most `limit` bytes."""
    payload = data[position + HEADER_SIZE : position + header.size_in_bytes]
    codec = header.compression
    return bytes(payload) if codec is Compression.NONE else decompress(codec, bytes(payload), limit)


def check_record_lengths(data: bytes | bytearray | memoryview, start: int, count: int, at_most: int) -> None:
    """Walk over the lengths of the (unpacked) records from `start` on: `count` of them must fill `data`.

    No more than `at_most` records are looked at, which bounds the cost on the hot path: a batch that lies is found
    unless both its count and its real number of records are greater.
    """
    end = len(data)
    if count * MIN_RECORD_SIZE > end - start:
        raise _invalid(f"the batch says it has {count} records but has {end - start} bytes of them")
    position = start
    try:
        for _ in range(count if count < at_most else at_most):
            byte = data[position]
            if byte < 0x80:
                length = byte
                position += 1
            elif (second := data[position + 1]) < 0x80:
                length = byte & 0x7F | second << 7
                position += 2
            else:
                size, position = decode_varint(data, position)
                length = size << 1
            if byte & 1 or length < _MIN_LENGTH_FIELD:
                raise _invalid("a record's length is too small")
            position += length >> 1
    except IndexError:
        raise _invalid(f"the batch has fewer than the {count} records it says it has") from None
    if position > end:
        raise _invalid("a record reaches beyond the end of its batch")
    if position != end and count <= at_most:
        raise _invalid(f"the batch has more bytes than the {count} records it says it has")


def read_records(
    data: bytes | bytearray | memoryview,
    position: int = 0,
    header: BatchHeader | None = None,
    *,
    limit: int = MAX_DECOMPRESSED_BYTES,
) -> list[Record]:
    """The records of the batch at `position`, with absolute offsets and timestamps.

    Raises INVALID_RECORD where they are not as many or not as long as the batch says.
    """
    if header is None:
        header = parse_header(data, position)
    try:
        return _decode_records(record_bytes(data, position, header, limit), header)
    except IndexError:
        raise _invalid("a record reaches beyond the end of its batch") from None


def _decode_records(raw: bytes, header: BatchHeader) -> list[Record]:
    end = len(raw)
    count = header.record_count
    if count < 0 or count * MIN_RECORD_SIZE > end:
        raise _invalid(f"the batch says it has {count} records but has {end} bytes of them")
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.timestamp_type else None
    records: list[Record] = []
    position = 0
    for _ in range(count):
        length, position = decode_varint(raw, position)
        record_end = position + length
        if length < MIN_RECORD_SIZE - 1 or record_end > end:
            raise _invalid("a record reaches beyond the end of its batch")
        timestamp_delta, position = decode_varint(raw, position + 1)
        offset_delta, position = decode_varint(raw, position)
        key, position = _decode_bytes(raw, position, record_end)
        value, position = _decode_bytes(raw, position, record_end)
        header_count, position = decode_varint(raw, position)
        headers: Sequence[tuple[bytes, bytes | None]] = ()
        if header_count:
            headers, position = _decode_headers(raw, position, record_end, header_count)
        if position != record_end:
            raise _invalid("a record's fields do not fill its length")
        timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
        records.append(Record(base_offset + offset_delta, timestamp, key, value, headers))
    if position != end:
        raise _invalid(f"the batch has more bytes than the {count} records it says it has")
    return records


def _decode_bytes(raw: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = decode_varint(raw, position)
    if length < 0:
        if length != -1:
            raise _invalid("a key or value has a negative length")
        return None, position
    stop = position + length
    if stop > end:
        raise _invalid("a key or value reaches beyond the end of its record")
    return raw[position:stop], stop


def _decode_headers(raw: bytes, position: int, end: int, count: int) -> tuple[list[tuple[bytes, bytes | None]], int]:
    if count < 0 or count * 2 > end - position:
        raise _invalid(f"a record cannot have {count} headers")
    headers: list[tuple[bytes, bytes | None]] = []
    for _ in range(count):
        key, position = _decode_bytes(raw, position, end)
        if key is None:
            raise _invalid("a record header has no key")
        value, position = _decode_bytes(raw, position, end)
        headers.append((key, value))
    return headers, position


# --- building


def _encode_record(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    key, value = record.key, record.value
    parts = [
        b"\x00",
        encode_varint(record.timestamp - base_timestamp),
        encode_varint(record.offset - base_offset),
    ]
    for field in (key, value):
        if field is None:
            parts.append(b"\x01")
        else:
            parts += (encode_varint(len(field)), field)
    parts.append(encode_varint(len(record.headers)))
    for name, content in record.headers:
        parts += (encode_varint(len(name)), name)
        if content is None:
            parts.append(b"\x01")
        else:
            parts += (encode_varint(len(content)), content)
    body = b"".join(parts)
    return encode_varint(len(body)) + body


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
    compression: Compression = Compression.NONE,
    level: int | None = None,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    log_append_time: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytes:
    """A new batch of `records`, whose offsets are absolute.

    `base_offset` and `last_offset` default to the first and the last record's; compaction passes the old batch's to
    keep its range. With `delete_horizon_ms` the base timestamp is the horizon and the deltas count from there.
    """
    items = list(records)
    if not items:
        raise ValueError("a batch needs a record; build_empty_batch makes one without")
    first = items[0].offset if base_offset is None else base_offset
    last = items[-1].offset if last_offset is None else last_offset
    base_timestamp = items[0].timestamp if delete_horizon_ms is None else delete_horizon_ms
    max_timestamp = max(record.timestamp for record in items) if log_append_time is None else log_append_time
    attributes = int(compression)
    if log_append_time is not None:
        attributes |= TIMESTAMP_TYPE_BIT
    if transactional:
        attributes |= TRANSACTIONAL_BIT
    if control:
        attributes |= CONTROL_BIT
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT
    payload = b"".join([_encode_record(record, first, base_timestamp) for record in items])
    if compression is not Compression.NONE:
        payload = compress(compression, payload, level)
    header = _AFTER_CRC.pack(
        attributes,
        last - first,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(items),
    )
    return _assemble(first, leader_epoch, header + payload)


def build_empty_batch(header: BatchHeader) -> bytes:
    """The batch of `header` with no records left: compaction keeps it so that the producer's sequence stays known."""
    attributes = header.attributes & (TIMESTAMP_TYPE_BIT | TRANSACTIONAL_BIT | CONTROL_BIT)
    covered = _AFTER_CRC.pack(
        attributes,
        header.last_offset_delta,
        NO_TIMESTAMP,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        0,
    )
    return _assemble(header.base_offset, header.partition_leader_epoch, covered)


def _assemble(base_offset: int, leader_epoch: int, covered: bytes) -> bytes:
    length = ATTRIBUTES_OFFSET - LOG_OVERHEAD + len(covered)
    crc = crc32c(covered)
    return _PREFIX.pack(base_offset, length, leader_epoch) + bytes((MAGIC,)) + _CRC.pack(crc) + covered


def control_batch(
    *,
    producer_id: int,
    producer_epoch: int,
    commit: bool,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """The batch of one end-transaction marker."""
    key = _CONTROL_KEY.pack(0, _COMMIT if commit else _ABORT)
    value = _END_TXN_MARKER.pack(0, coordinator_epoch)
    return build_batch(
        [Record(base_offset, timestamp, key, value)],
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def read_marker(data: bytes | bytearray | memoryview, position: int, header: BatchHeader) -> EndTxnMarker | None:
    """The marker in the control batch at `position`; None if its record was compacted away or is of another kind."""
    records = read_records(data, position, header)
    if not records:
        return None
    key, value = records[0].key, records[0].value
    if key is None or len(key) < _CONTROL_KEY.size:
        raise _invalid("a control record has no type")
    kind = _CONTROL_KEY.unpack_from(key)[1]
    if kind not in (_ABORT, _COMMIT):
        return None
    if value is None or len(value) < _END_TXN_MARKER.size:
        raise _invalid("an end-transaction marker has no coordinator epoch")
    version, coordinator_epoch = _END_TXN_MARKER.unpack_from(value)
    if version < 0:
        raise _invalid(f"an end-transaction marker has the version {version}")
    return EndTxnMarker(kind == _COMMIT, coordinator_epoch)
