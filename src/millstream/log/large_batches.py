"""How long large batches are: read once from their beginnings, for the next consumer who comes along.

All logs of a data folder share the memory of it, which is bounded. A segment that is cut in place has to say so.
"""

from struct import Struct
from typing import Final

from millstream.log.segment import Segment
from millstream.wire.batches import LOG_OVERHEAD

LARGE_BATCH: Final = 256 * 1024
_MOST: Final = 1024
_START: Final = Struct(">qi")


class LargeBatches:
    __slots__ = ("_known",)

    def __init__(self) -> None:
        # (Segment, position) -> (base offset, size).
        self._known: dict[tuple[Segment, int], tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def forget(self) -> None:
        self._known.clear()

    def look_at(self, segment: Segment, position: int) -> tuple[int, int]:
        """Base offset and size of the batch there, large or not."""
        place = segment, position
        found = self._known.get(place)
        if found is None:
            base_offset, length = _START.unpack(segment.file.read_at(_START.size, position))
            found = base_offset, length + LOG_OVERHEAD
            if found[1] >= LARGE_BATCH:
                if len(self._known) >= _MOST:
                    self._known.clear()
                self._known[place] = found
        return found
