"""The last offset of each key in the dirty part of a log: what compaction decides by. Bounded.

Keys of more than 16 bytes are kept as their MD5 digest, as Kafka keeps all of them: what matters is the memory, and
that two keys do not collide by chance. When the map is full, compaction goes as far as it got and goes on next time.
"""

from hashlib import md5
from typing import Final

# A bytes object, an int and their share of the dict.
_ENTRY_BYTES: Final = 160
_DIGEST_SIZE: Final = 16
DEFAULT_MEMORY_BYTES: Final = 128 * 1024 * 1024


class OffsetMap:
    __slots__ = ("_limit", "_offsets", "latest_offset")

    def __init__(self, memory_bytes: int = DEFAULT_MEMORY_BYTES) -> None:
        self._offsets: dict[bytes, int] = {}
        self._limit = max(memory_bytes // _ENTRY_BYTES, 1)
        # Up to this offset, all keys are in the map.
        self.latest_offset = -1

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        return len(self._offsets) >= self._limit

    def put(self, key: bytes, offset: int) -> None:
        self._offsets[_compact(key)] = offset

    def get(self, key: bytes) -> int:
        """The last offset of `key` in the dirty part, -1 if it does not occur there."""
        return self._offsets.get(_compact(key), -1)


def _compact(key: bytes) -> bytes:
    if len(key) < _DIGEST_SIZE:
        return key
    return md5(key, usedforsecurity=False).digest()
