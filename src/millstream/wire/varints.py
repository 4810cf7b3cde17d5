"""Zigzag varints, as records have them: seven bits a byte, the lowest first, the sign in the lowest bit.

Pure Python, and the innermost loop wherever records are opened or built: the one-byte case comes first in both ways.
"""

from typing import Final

from millstream.wire.errors import ErrorCode, KafkaError

_ONE_BYTE: Final = tuple(bytes((n,)) for n in range(0x80))


def encode_varint(value: int) -> bytes:
    """`value` as a zigzag varint."""
    rest = value << 1 if value >= 0 else (~value << 1) | 1
    if rest < 0x80:
        return _ONE_BYTE[rest]
    out = bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def decode_varint(data: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    """The zigzag varint at `position` and the position behind it. IndexError if the bytes end before it does."""
    byte = data[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    value, shift = byte & 0x7F, 7
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > 63:
            raise KafkaError(ErrorCode.INVALID_RECORD, "a varint is longer than ten bytes")
