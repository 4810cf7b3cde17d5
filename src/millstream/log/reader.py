"""From offsets to places in the files: what a read of the log needs, and nothing of how the log grows.

Places are found, cheapest first, among the last appends, among the beginnings of open transactions, among the places
looked up lately, and at last through the offset index and a short scan. So consumers at the tail cost no look into a
file, and the last stable offset is not searched for again with every fetch.
"""

from typing import Final

from millstream.log.large_batches import LARGE_BATCH, LargeBatches
from millstream.log.producer_state import ProducerState
from millstream.log.segment import Segment
from millstream.log.segments import Segments
from millstream.log.transaction_index import AbortedTransaction

_REMEMBERED: Final = 32


class LogReader:
    __slots__ = ("_batches", "_positions", "_producers", "_recent", "_segments")

    def __init__(self, segments: Segments, producers: ProducerState, batches: LargeBatches) -> None:
        self._segments = segments
        self._batches = batches
        self._producers = producers
        # Base offset -> position in the active segment, of the last appends.
        self._recent: dict[int, int] = {}
        # Offset -> (segment base offset, position), of places that were looked up in the files.
        self._positions: dict[int, tuple[int, int]] = {}

    def note_append(self, base_offset: int, position: int) -> None:
        recent = self._recent
        recent[base_offset] = position
        if len(recent) > 2 * _REMEMBERED:
            for offset in list(recent)[:_REMEMBERED]:
                del recent[offset]

    def forget(self) -> None:
        """Segments were rolled, cut or replaced."""
        self._recent.clear()
        self._positions.clear()
        self._batches.forget()

    def find(self, offset: int) -> tuple[Segment, int] | None:
        """The segment and position of the first batch that ends at `offset` or behind it."""
        segments = self._segments
        position = self._recent.get(offset)
        if position is not None:
            return segments.active, position
        index = segments.floor_index(offset)
        known = self._positions.get(offset)
        if known is not None and segments[index].base_offset == known[0]:
            return segments[index], known[1]
        while 0 <= index < len(segments):
            segment = segments[index]
            batch = segment.locate(offset)
            if batch is not None:
                return segment, batch.position
            index += 1
        return None

    def position_of(self, offset: int, log_end_offset: int) -> tuple[int, int]:
        """Segment base offset and position of the batch that holds `offset`, or of the log's end."""
        active = self._segments.active
        if offset >= log_end_offset:
            return active.base_offset, active.size
        known = self._recent.get(offset)
        if known is not None:
            return active.base_offset, known
        ongoing = self._producers.ongoing.get(offset)
        if ongoing is not None and ongoing.position >= 0:
            return ongoing.segment_base_offset, ongoing.position
        cached = self._positions.get(offset)
        if cached is None:
            found = self.find(offset)
            if found is None:
                return active.base_offset, active.size
            cached = self._remember(offset, found[0].base_offset, found[1])
        return cached

    def _remember(self, offset: int, segment_base: int, position: int) -> tuple[int, int]:
        if len(self._positions) >= _REMEMBERED:
            self._positions.clear()
        self._positions[offset] = place = segment_base, position
        return place

    def end_position(self, segment: Segment, upper: int, log_end_offset: int) -> int:
        """Where a reader of this segment has to stop so that it sees nothing from offset `upper` on."""
        if upper >= log_end_offset:
            return segment.size
        segment_base, position = self.position_of(upper, log_end_offset)
        if segment.base_offset == segment_base:
            return position
        return segment.size if segment.base_offset < segment_base else 0

    def limit(
        self, segment: Segment, position: int, available: int, max_bytes: int, *, whole: bool
    ) -> tuple[int, bool]:
        """How many of the available bytes to give, and whether that cuts off even the first batch.

        Behind a large batch nothing is cut: who gets a part of one throws it away and asks again (among smaller ones
        the look for the cut would cost more than it saves). Where the next one begins is remembered, since that is
        where the reader goes on.
        """
        if available <= max_bytes:
            return available, False
        _, size = self._batches.look_at(segment, position)
        if size > max_bytes:
            return (size, False) if whole else (max_bytes, True)
        length = size
        while size >= LARGE_BATCH:
            base_offset, size = self._batches.look_at(segment, position + length)
            if length + size > max_bytes:
                self._remember(base_offset, segment.base_offset, position + length)
                return length, False
            length += size
        return max_bytes, False

    def bytes_between(self, start: int, end: int, log_end_offset: int) -> int:
        start_base, start_position = self.position_of(start, log_end_offset)
        end_base, end_position = self.position_of(end, log_end_offset)
        if start_base == end_base:
            return end_position - start_position
        between = self._segments.between(start_base, end_base)
        return sum(segment.size for segment in between) - start_position + end_position

    def aborted_in(self, first_offset: int, upper_bound: int) -> list[AbortedTransaction]:
        """The aborted transactions that have records in [first offset, upper bound)."""
        found: list[AbortedTransaction] = []
        segments = self._segments
        for index in range(max(segments.floor_index(first_offset), 0), len(segments)):
            entries, complete = segments[index].transaction_index.collect(first_offset, upper_bound)
            found += entries
            if complete:
                break
        return found

    def aborted_in_slice(
        self, segment: Segment, position: int, length: int, offset: int, log_end_offset: int
    ) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted transactions a reader of this slice has to know."""
        if not self._segments.have_aborted(offset):
            return []
        end = segment.offset_index.offset_at_or_after(position + length)
        if end is None:
            end = self._segments.end_of(segment, log_end_offset)
        return [(entry.producer_id, entry.first_offset) for entry in self.aborted_in(offset, end)]
