"""The four codecs of a record batch: gzip, snappy, lz4 and zstd, in the framings that Kafka's clients write and read.

What each one looks like on the wire:

* gzip: one gzip stream (several members in a row are read as one).
* snappy: written in xerial's framing, `82 'SNAPPY' 00 | version int32 | compatible int32 | (length int32 | block)*`,
  with blocks of 32 KiB as the Java client has them; a bare raw block (what librdkafka may send) is read too.
* lz4: the LZ4 frame format with *independent* blocks of 64 KiB and no checksums but the header's. The Java client
  refuses linked blocks, which is what the library's own frames have; so the frame is put together here from blocks.
* zstd: one zstd frame.

Nothing here trusts a length: decompression takes the greatest size it may yield and fails beyond it, so a small batch
cannot unpack into all of the memory. What cannot be unpacked is CORRUPT_MESSAGE, the peer's fault.
"""

import zlib
from enum import IntEnum
from struct import Struct
from typing import Final

import cramjam

from millstream.wire.errors import ErrorCode, KafkaError


class Compression(IntEnum):
    """The codec in the lowest three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


GZIP_DEFAULT_LEVEL: Final = -1
LZ4_DEFAULT_LEVEL: Final = 9
ZSTD_DEFAULT_LEVEL: Final = 3
DEFAULT_LEVELS: Final = {
    Compression.GZIP: GZIP_DEFAULT_LEVEL,
    Compression.LZ4: LZ4_DEFAULT_LEVEL,
    Compression.ZSTD: ZSTD_DEFAULT_LEVEL,
}

# Kafka unpacks a batch record by record and so needs no bound; here a batch is unpacked whole.
MAX_DECOMPRESSED_BYTES: Final = 256 * 1024 * 1024

_INT32: Final = Struct(">i")
_UINT32_LE: Final = Struct("<I")

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + _INT32.pack(1) + _INT32.pack(1)
_XERIAL_BLOCK: Final = 32 * 1024

# Magic, FLG (version 1, independent blocks), BD (64 KiB), and the header checksum these two bytes always have.
_LZ4_HEADER: Final = bytes.fromhex("04224d18604082")
_LZ4_BLOCK: Final = 64 * 1024
_LZ4_RAW_BLOCK: Final = 0x80000000
_LZ4_END: Final = _UINT32_LE.pack(0)

_FIRST_GUESS: Final = 8


def compress(codec: Compression, data: bytes, level: int | None = None) -> bytes:
    """`data` packed with `codec`; `level` as in `compression.<codec>.level`, None for the codec's default."""
    if codec is Compression.NONE:
        return data
    if codec is Compression.SNAPPY:
        return _compress_snappy(data)
    if level is None:
        level = DEFAULT_LEVELS[codec]
    if codec is Compression.GZIP:
        packer = zlib.compressobj(level, zlib.DEFLATED, 31)
        return packer.compress(data) + packer.flush()
    if codec is Compression.LZ4:
        return _compress_lz4(data, level)
    return bytes(cramjam.zstd.compress(data, level))


def decompress(codec: Compression, data: bytes | memoryview, limit: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """`data` unpacked, never more than `limit` bytes. Raises CORRUPT_MESSAGE for what is no such stream or too long."""
    try:
        if codec is Compression.NONE:
            return bytes(data)
        if codec is Compression.GZIP:
            return _decompress_gzip(data, limit)
        if codec is Compression.SNAPPY:
            return _decompress_snappy(bytes(data), limit)
        return _decompress_into(codec, data, limit)
    except (cramjam.DecompressionError, zlib.error, ValueError) as error:
        message = f"the {codec.name.lower()} data cannot be unpacked: {error}"
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message) from error


def _too_long(limit: int) -> ValueError:
    return ValueError(f"it unpacks to more than {limit} bytes")


def _decompress_gzip(data: bytes | memoryview, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    rest: bytes | memoryview = data
    while rest:
        unpacker = zlib.decompressobj(31)
        part = unpacker.decompress(rest, limit - size + 1)
        size += len(part)
        if size > limit:
            raise _too_long(limit)
        if not unpacker.eof:
            raise ValueError("the stream is cut off")
        parts.append(part)
        rest = unpacker.unused_data
    return b"".join(parts)


def _compress_snappy(data: bytes) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK]))
        parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _decompress_snappy_block(data, limit)
    parts: list[bytes] = []
    position, end = len(_XERIAL_HEADER), len(data)
    while position < end:
        if position + 4 > end:
            raise ValueError("the stream is cut off")
        size = _INT32.unpack_from(data, position)[0]
        position += 4
        if size < 0 or position + size > end:
            raise ValueError("a block is longer than the data")
        block = _decompress_snappy_block(data[position : position + size], limit)
        limit -= len(block)
        parts.append(block)
        position += size
    return b"".join(parts)


def _decompress_snappy_block(block: bytes, limit: int) -> bytes:
    # A raw block says its length up front; the library allocates what it says, so it is looked at first.
    if cramjam.snappy.decompress_raw_len(block) > limit:
        raise _too_long(limit)
    return bytes(cramjam.snappy.decompress_raw(block))


def _compress_lz4(data: bytes, level: int) -> bytes:
    parts = [_LZ4_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK):
        block = data[start : start + _LZ4_BLOCK]
        # The library heeds the level in frames only: the block is taken out of a frame of its own.
        frame = bytes(cramjam.lz4.compress(block, level))
        size = _UINT32_LE.unpack_from(frame, len(_LZ4_HEADER))[0] & ~_LZ4_RAW_BLOCK
        parts.append(frame[len(_LZ4_HEADER) : len(_LZ4_HEADER) + 4 + size])
    parts.append(_LZ4_END)
    return b"".join(parts)


def _decompress_into(codec: Compression, data: bytes | memoryview, limit: int) -> bytes:
    """Into a buffer of a guessed size first, and into one of the greatest allowed size if that was too small.

    The memory of a fresh large buffer is taken from the system only as far as it is written, so the second one costs
    what the data really needs.
    """
    module = cramjam.lz4 if codec is Compression.LZ4 else cramjam.zstd
    guess = min(limit, len(data) * _FIRST_GUESS + 1024)
    for size in (guess, limit):
        buffer = bytearray(size)
        try:
            written = module.decompress_into(data, buffer)
        except cramjam.DecompressionError as error:
            if "write whole buffer" not in str(error):
                raise
            continue
        return bytes(memoryview(buffer)[:written])
    raise _too_long(limit)
