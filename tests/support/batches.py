"""Hand-made record batches (magic 2) for the raw tests, written from the protocol's description alone.

`batch()` makes one batch; every header field can be given, wrong ones too (a bad CRC, a count that lies).
`read_batches()` takes what a Fetch response carries apart. Nothing here uses Millstream's own code: the tests must not
share its errors.
"""

import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import cramjam
from crc32c import crc32c

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
HEADER = struct.Struct(">qiibIhiqqqhii")
AFTER_CRC = struct.Struct(">hiqqqhii")
TRANSACTIONAL, CONTROL, LOG_APPEND_TIME = 0x10, 0x20, 0x08


@dataclass
class Rec:
    """One record; `offset` and `timestamp` are absolute in what was read, ignored or relative in what is written."""

    value: bytes | None
    key: bytes | None = None
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)
    timestamp: int | None = None
    offset: int = -1


@dataclass
class ReadBatch:
    base_offset: int
    length: int
    leader_epoch: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int
    records: list[Rec] = field(default_factory=list)

    @property
    def codec(self) -> str:
        return next(name for name, code in CODECS.items() if code == self.attributes & 7)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)


def now_ms() -> int:
    return int(time.time() * 1000)


def varint(value: int) -> bytes:
    number = (value << 1) ^ (value >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append((number & 0x7F) | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record_bytes(record: Rec, offset_delta: int, timestamp_delta: int) -> bytes:
    body = b"\0" + varint(timestamp_delta) + varint(offset_delta) + _sized(record.key) + _sized(record.value)
    body += varint(len(record.headers))
    for name, value in record.headers:
        body += _sized(name.encode()) + _sized(value)
    return varint(len(body)) + body


def compress(codec: str, data: bytes) -> bytes:
    match codec:
        case "gzip":
            return bytes(cramjam.gzip.compress(data))
        case "snappy":
            raw = bytes(cramjam.snappy.compress_raw(data))
            return b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, len(raw)) + raw
        case "lz4":
            # Kafka's Java reader takes independent blocks only.
            compressor = cramjam.lz4.Compressor(block_linked=False)
            compressor.compress(data)
            return bytes(compressor.finish())
        case "zstd":
            return bytes(cramjam.zstd.compress(data))
    return data


def decompress(codec: str, data: bytes) -> bytes:
    match codec:
        case "gzip":
            return bytes(cramjam.gzip.decompress(data))
        case "snappy":
            if not data.startswith(b"\x82SNAPPY\0"):
                return bytes(cramjam.snappy.decompress_raw(data))
            out, at = b"", 16
            while at < len(data):
                (size,) = struct.unpack_from(">i", data, at)
                out += bytes(cramjam.snappy.decompress_raw(data[at + 4 : at + 4 + size]))
                at += 4 + size
            return out
        case "lz4":
            return bytes(cramjam.lz4.decompress(data))
        case "zstd":
            return bytes(cramjam.zstd.decompress(data))
    return data


def batch(
    records: Sequence[Rec | bytes],
    *,
    codec: str = "none",
    attributes: int = 0,
    base_offset: int = 0,
    leader_epoch: int = -1,
    magic: int = 2,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    count: int | None = None,
    last_offset_delta: int | None = None,
    crc: int | None = None,
    payload: bytes | None = None,
    length: int | None = None,
) -> bytes:
    """One batch; whatever is not given is what an honest producer would write."""
    items = [record if isinstance(record, Rec) else Rec(record) for record in records]
    times = [record.timestamp for record in items if record.timestamp is not None]
    base = base_timestamp if base_timestamp is not None else (times[0] if times else now_ms())
    plain = b"".join(
        record_bytes(record, delta, (record.timestamp if record.timestamp is not None else base) - base)
        for delta, record in enumerate(items)
    )
    body = AFTER_CRC.pack(
        attributes | CODECS[codec],
        len(items) - 1 if last_offset_delta is None else last_offset_delta,
        base,
        max_timestamp if max_timestamp is not None else max(times, default=base),
        producer_id,
        producer_epoch,
        base_sequence,
        len(items) if count is None else count,
    ) + (payload if payload is not None else compress(codec, plain))
    checksum = crc32c(body) if crc is None else crc
    head = struct.pack(">ibI", leader_epoch, magic, checksum)
    size = len(head) + len(body) if length is None else length
    return struct.pack(">qi", base_offset, size) + head + body


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    shift = number = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7


def _read_sized(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = _read_varint(data, at)
    return (None, at) if size < 0 else (data[at : at + size], at + size)


def read_records(data: bytes, count: int, base_offset: int, base_timestamp: int) -> list[Rec]:
    records, at = [], 0
    for _ in range(count):
        _, at = _read_varint(data, at)
        timestamp_delta, at = _read_varint(data, at + 1)
        offset_delta, at = _read_varint(data, at)
        key, at = _read_sized(data, at)
        value, at = _read_sized(data, at)
        headers: list[tuple[str, bytes | None]] = []
        header_count, at = _read_varint(data, at)
        for _ in range(header_count):
            name, at = _read_sized(data, at)
            content, at = _read_sized(data, at)
            headers.append(((name or b"").decode(), content))
        records.append(Rec(value, key, headers, base_timestamp + timestamp_delta, base_offset + offset_delta))
    return records


def read_batches(data: bytes | None) -> list[ReadBatch]:
    """All whole batches in the bytes of a Fetch response; each CRC is checked."""
    data = data or b""
    found, at = [], 0
    while at + HEADER.size <= len(data):
        base_offset, length, epoch, magic, crc, attributes, delta, *rest = HEADER.unpack_from(data, at)
        end = at + 12 + length
        if end > len(data):
            break
        assert magic == 2
        assert crc32c(data[at + 21 : end]) == crc, "CRC of a fetched batch"
        head = ReadBatch(base_offset, length, epoch, crc, attributes, delta, *rest)
        plain = decompress(head.codec, data[at + HEADER.size : end])
        head.records = read_records(plain, head.count, base_offset, head.base_timestamp)
        found.append(head)
        at = end
    return found


def values(data: bytes | None) -> list[bytes | None]:
    """The values of all data records."""
    return [record.value for part in read_batches(data) if not part.is_control for record in part.records]
