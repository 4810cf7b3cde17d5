"""A segment: a run of record batches in one file, with its three indexes.

Files `<base offset, 20 digits>.log/.index/.timeindex` and, if there are aborted transactions, `.txnindex`. Batches lie
one after the other, offsets ascend. Only the last segment of a log, the active one, is appended to; its size in memory
is the truth, bytes behind it in the file are what a failed write left, or room, and are overwritten by the next append.

Room: a segment that has grown to `ROOM_FROM` by small batches gets zeros for the next ones, `ROOM` at a time. The
kernel makes many pages at once for half the price, and an fsync need not write a new size of the file with every batch.
`seal` cuts off what is left of it; after a crash recovery does.

A write that fails is cut off at once. If even that fails, the tail is cut by the next append or by recovery: nothing
reads behind `size`.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from millstream.log.config import LogConfig
from millstream.log.filesystem import Bytes, Entry, File
from millstream.log.offset_index import ENTRY as OFFSET_ENTRY
from millstream.log.offset_index import OffsetIndex
from millstream.log.open_files import OpenFiles
from millstream.log.time_index import ENTRY as TIME_ENTRY
from millstream.log.time_index import TimeIndex
from millstream.log.transaction_index import TransactionIndex
from millstream.wire.batches import HEADER_SIZE, LOG_OVERHEAD, MAGIC, NO_TIMESTAMP, BatchHeader, parse_header

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
DELETED_SUFFIX: Final = ".deleted"

ROOM: Final = 1 << 18
ROOM_FROM: Final = 1 << 20
_SMALL_BATCH: Final = 1 << 15
_ZEROS: Final = memoryview(bytes(ROOM + _SMALL_BATCH))

MAX_RELATIVE_OFFSET: Final = 0x7FFFFFFF
MAX_TIMESTAMP: Final = 0x7FFFFFFFFFFFFFFF
_SEARCH_WINDOW: Final = 8192
_SCAN_CHUNK: Final = 4 * 1024 * 1024
# Base offset, batch length; then, behind leader epoch, magic, crc and attributes, the last offset delta.
_LOCATOR: Final = Struct(">qi11xi")


def segment_name(base_offset: int) -> str:
    return f"{base_offset:020d}"


def may_be_room(position: int, size: int) -> bool:
    """Whether zeros from `position` to the end of a segment's file can be room, rather than what a crash left."""
    return position >= ROOM_FROM and size - position <= len(_ZEROS)


class BatchPosition(NamedTuple):
    """Where a batch lies in its segment."""

    position: int
    base_offset: int
    last_offset: int
    size: int


class Segment:
    __slots__ = (
        "_bytes_since_index_entry",
        "_created_ms",
        "_first_timestamp",
        "_max_timestamp",
        "_offset_of_max_timestamp",
        "_open_files",
        "_room_end",
        "_tail_is_dirty",
        "base_offset",
        "directory",
        "log_path",
        "offset_index",
        "roll_jitter_ms",
        "size",
        "time_index",
        "transaction_index",
    )

    def __init__(
        self,
        open_files: OpenFiles,
        directory: str,
        base_offset: int,
        sizes: Sequence[int],
        *,
        active: bool,
        created_ms: int,
        roll_jitter_ms: int = 0,
        suffix: str = "",
    ) -> None:
        """`sizes` are those of the four files, in the order of SUFFIXES."""
        stem = f"{directory}/{base_offset:020d}"
        file_system = open_files.file_system
        log_size, index_size, time_index_size, transaction_index_size = sizes
        self._open_files = open_files
        self.directory = directory
        self.base_offset = base_offset
        self.log_path = stem + LOG_SUFFIX + suffix
        self.size = log_size
        self.offset_index = OffsetIndex(
            file_system, stem + INDEX_SUFFIX + suffix, base_offset, size=index_size, in_memory=active
        )
        self.time_index = TimeIndex(
            file_system, stem + TIME_INDEX_SUFFIX + suffix, base_offset, size=time_index_size, in_memory=active
        )
        self.transaction_index = TransactionIndex(
            file_system, stem + TRANSACTION_INDEX_SUFFIX + suffix, size=transaction_index_size
        )
        self.roll_jitter_ms = roll_jitter_ms
        self._created_ms = created_ms
        self._first_timestamp: int | None = None
        self._max_timestamp: int | None = None if log_size else NO_TIMESTAMP
        self._offset_of_max_timestamp = base_offset
        self._bytes_since_index_entry = 0
        self._tail_is_dirty = False
        self._room_end = 0

    @classmethod
    def create(
        cls,
        open_files: OpenFiles,
        directory: str,
        base_offset: int,
        *,
        created_ms: int,
        roll_jitter_ms: int = 0,
        suffix: str = "",
    ) -> "Segment":
        """A new, empty segment; files of that name are overwritten. The index files come with their first entries."""
        segment = cls(
            open_files,
            directory,
            base_offset,
            (0, 0, 0, 0),
            active=True,
            created_ms=created_ms,
            roll_jitter_ms=roll_jitter_ms,
            suffix=suffix,
        )
        open_files.forget(segment.log_path)
        file = open_files.file_system.open(segment.log_path, create=True)
        if file.size():
            file.truncate(0)
        for path in segment.paths()[1:]:
            open_files.file_system.remove(path)
        return segment

    @classmethod
    def load(
        cls,
        open_files: OpenFiles,
        directory: str,
        base_offset: int,
        files: dict[str, Entry],
        *,
        active: bool,
        created_ms: int,
    ) -> "Segment":
        """The segment whose files are in the folder; `files` are the folder's entries by name."""
        name = segment_name(base_offset)
        sizes = [files[name + suffix].size if name + suffix in files else 0 for suffix in SUFFIXES]
        return cls(open_files, directory, base_offset, sizes, active=active, created_ms=created_ms)

    @property
    def file(self) -> File:
        return self._open_files.get(self.log_path)

    # --- timestamps

    @property
    def max_timestamp(self) -> int:
        """The greatest timestamp, -1 if there is none: from the time index and the tail behind its last entry."""
        timestamp = self._max_timestamp
        return self._load_max_timestamp() if timestamp is None else timestamp

    @property
    def offset_of_max_timestamp(self) -> int:
        """The last offset of the batch with the greatest timestamp."""
        if self._max_timestamp is None:
            self._load_max_timestamp()
        return self._offset_of_max_timestamp

    def _load_max_timestamp(self, end: int | None = None) -> int:
        timestamp, offset = self.time_index.last_entry()
        # The time index is kept up with every entry of the offset index, so only the batches behind that are unknown.
        for _, header in self.scan(self.offset_index.last_position(), end=end):
            if header.max_timestamp > timestamp:
                timestamp, offset = header.max_timestamp, header.last_offset
        self._max_timestamp, self._offset_of_max_timestamp = timestamp, offset
        return timestamp

    @property
    def largest_timestamp(self) -> int:
        """What retention goes by: the greatest timestamp, or when the file was last changed if no record has one."""
        timestamp = self.max_timestamp
        return timestamp if timestamp >= 0 else self.modified_ms()

    @property
    def first_timestamp(self) -> int:
        """The first batch's greatest timestamp, -1 if there is none."""
        if self._first_timestamp is None:
            if self.size < HEADER_SIZE:
                return NO_TIMESTAMP
            self._first_timestamp = parse_header(self.file.read_at(HEADER_SIZE, 0)).max_timestamp
        return self._first_timestamp

    def modified_ms(self) -> int:
        return self._open_files.file_system.modified_ms(self.log_path)

    # --- appending

    def should_roll(self, size: int, last_offset: int, max_timestamp: int, now: int, config: LogConfig) -> bool:
        """Whether a batch of this size must go into a new segment."""
        if self.size > config.segment_bytes - size:
            return True
        if last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return True
        if self.size == 0:
            return False
        first = self._first_timestamp
        if first is None:
            first = self.first_timestamp
        waited = max_timestamp - first if first >= 0 else now - self._created_ms
        return (
            waited > config.max_segment_ms - self.roll_jitter_ms
            or self.offset_index.size + OFFSET_ENTRY.size > config.segment_index_bytes
            or self.time_index.size + TIME_ENTRY.size > config.segment_index_bytes
        )

    def append(self, batch: Bytes, last_offset: int, max_timestamp: int, index_interval_bytes: int) -> None:
        """Write one batch. On an OSError nothing has changed."""
        position, size = self.size, len(batch)
        file = self._open_files.get(self.log_path)
        if self._tail_is_dirty:
            file.truncate(position)
            self._tail_is_dirty = False
        if position + size > self._room_end and position >= ROOM_FROM and size <= _SMALL_BATCH:
            self._make_room(file, position + size)
        try:
            file.write_all_at(batch, position)
        except OSError:
            self._cut_tail(file)
            raise
        self.size = position + size
        self.note_batch(position, size, last_offset, max_timestamp, index_interval_bytes)

    def _make_room(self, file: File, end: int) -> None:
        """At least up to `end`. Without room, on a full disk for example, all goes on: the batch makes its own."""
        room_end = (end // ROOM + 1) * ROOM
        try:
            file.write_all_at(_ZEROS[: room_end - self.size], self.size)
            self._room_end = room_end
        except OSError:
            self._cut_tail(file)

    def note_batch(
        self, position: int, size: int, last_offset: int, max_timestamp: int, index_interval_bytes: int
    ) -> None:
        """Keep the indexes and the greatest timestamp up with a batch that lies at `position`."""
        if self._first_timestamp is None:
            self._first_timestamp = max_timestamp if position == 0 else self.first_timestamp
        greatest = self._max_timestamp
        if greatest is None:
            greatest = self._load_max_timestamp()
        if max_timestamp > greatest:
            self._max_timestamp = greatest = max_timestamp
            self._offset_of_max_timestamp = last_offset
        if self._bytes_since_index_entry > index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(greatest, self._offset_of_max_timestamp)
            self._bytes_since_index_entry = 0
        self._bytes_since_index_entry += size

    def _cut_tail(self, file: File) -> None:
        self._room_end = 0
        try:
            file.truncate(self.size)
        except OSError:
            self._tail_is_dirty = True

    @property
    def room(self) -> int:
        """How many bytes of batches find a place in the file that there is."""
        return max(self._room_end - self.size, 0)

    def is_room(self, position: int) -> bool:
        """Whether there is nothing but room from `position` to the end of the file, as `load` found it."""
        return may_be_room(position, self.size) and not any(self.file.read_at(self.size - position, position))

    # --- reading

    def locate(self, offset: int, position: int | None = None) -> BatchPosition | None:
        """The first batch that ends at `offset` or behind it; None if there is none in this segment."""
        if position is None:
            position = self.offset_index.lookup(offset)
        file = self.file
        while position < self.size:
            data = file.read_at(min(_SEARCH_WINDOW, self.size - position), position)
            inside, end = 0, len(data)
            while inside + _LOCATOR.size <= end:
                base_offset, length, delta = _LOCATOR.unpack_from(data, inside)
                if base_offset + delta >= offset:
                    return BatchPosition(position + inside, base_offset, base_offset + delta, length + LOG_OVERHEAD)
                inside += length + LOG_OVERHEAD
                if length <= 0:
                    raise OSError(f"{self.log_path} has a batch of {length} bytes at {position + inside}")
            if inside == 0:
                return None
            position += inside
        return None

    def scan(self, position: int = 0, *, end: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of each batch from `position` on. Reads headers only, many at a time."""
        for start, data in self.chunks(position, end=end):
            inside, length = 0, len(data)
            while inside < length:
                header = parse_header(data, inside)
                yield start + inside, header
                inside += header.size_in_bytes

    def chunks(self, position: int = 0, *, end: int | None = None) -> Iterator[tuple[int, bytes]]:
        """The segment from `position` on, in large pieces of whole batches.

        Ends at the first thing that cannot be a batch: recovery compares where it ended with the size.
        """
        stop = self.size if end is None else end
        if position >= stop:
            return
        file = self.file
        chunk = _SCAN_CHUNK
        while position < stop:
            data = file.read_at(min(chunk, stop - position), position)
            inside, length = 0, len(data)
            sane = True
            while inside + HEADER_SIZE <= length:
                size = int.from_bytes(data[inside + 8 : inside + 12], "big", signed=True) + LOG_OVERHEAD
                if size < HEADER_SIZE or data[inside + 16] != MAGIC:
                    sane = False
                    break
                if inside + size > length:
                    chunk = max(_SCAN_CHUNK, size)
                    break
                inside += size
            if inside:
                yield position, data if inside == length else data[:inside]
            position += inside
            if not sane or (inside == 0 and (len(data) < chunk or position + chunk > stop)):
                return

    # --- life

    def write_indexes(self) -> None:
        """Bring the indexes into their files, as far as they go now."""
        self.offset_index.write()
        self.time_index.write()

    def seal(self) -> None:
        """No more appends: the greatest timestamp becomes the last time index entry, nothing stays in memory."""
        if self.size == 0:
            return
        if self.room or self._tail_is_dirty:
            self.file.truncate(self.size)
            self._room_end, self._tail_is_dirty = 0, False
        self.time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
        self.offset_index.seal()
        self.time_index.seal()

    def files_to_sync(self) -> list[File]:
        """All files, open, for a worker to sync: they stay the right ones whatever happens to the names meanwhile."""
        file_system = self._open_files.file_system
        paths = [self.offset_index.path, self.time_index.path]
        if self.transaction_index.size:
            paths.append(self.transaction_index.path)
        return [file_system.open(path, create=True) for path in paths] + [self.file]

    def take_back(self, position: int, offset: int) -> None:
        """Undo the append of the batch at `position`, which had `offset`: something that belongs to it failed."""
        self.size = position
        self._cut_tail(self.file)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self._max_timestamp = None if position else NO_TIMESTAMP
        self._offset_of_max_timestamp = self.base_offset
        self._first_timestamp = None

    def truncate_to_position(self, position: int, offset: int) -> None:
        """Cut the segment off at `position`, which is where `offset` would be."""
        self.file.truncate(position)
        self.size = position
        self._room_end = 0
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        self._max_timestamp = None if position else NO_TIMESTAMP
        self._offset_of_max_timestamp = self.base_offset
        self._first_timestamp = None
        self._bytes_since_index_entry = 0

    def keep_indexes_before(self, offset: int) -> None:
        """Recovery reads on from `offset`: what the indexes say about the rest is cut off and built anew."""
        limit = offset - self.base_offset
        self.offset_index.keep_sound_prefix((limit, self.size))
        self.time_index.keep_sound_prefix((MAX_TIMESTAMP, limit))
        self.transaction_index.keep_sound_prefix(offset)
        self._first_timestamp = None
        self._bytes_since_index_entry = 0

    def load_max_timestamp(self, position: int) -> None:
        """The greatest timestamp of the part before `position`, whose indexes are complete."""
        self._load_max_timestamp(position)

    def reset_indexes(self) -> None:
        """Before recovery builds them anew."""
        self.offset_index.reset()
        self.time_index.reset()
        self.transaction_index.reset()
        self._max_timestamp = NO_TIMESTAMP
        self._offset_of_max_timestamp = self.base_offset
        self._first_timestamp = None
        self._bytes_since_index_entry = 0

    def file_sizes(self) -> tuple[int, int, int, int]:
        """In the order of SUFFIXES."""
        return self.size, self.offset_index.size, self.time_index.size, self.transaction_index.size

    def paths(self) -> list[str]:
        return [self.log_path, self.offset_index.path, self.time_index.path, self.transaction_index.path]

    def rename_suffix(self, old: str, new: str) -> None:
        """Change the end of the four files' names. The log file comes last: it is what makes a segment."""
        file_system = self._open_files.file_system
        for index in (self.offset_index, self.time_index, self.transaction_index):
            target = index.path.removesuffix(old) + new
            if file_system.exists(index.path):
                file_system.rename(index.path, target)
            index.path = target
        target = self.log_path.removesuffix(old) + new
        file_system.rename(self.log_path, target)
        self._open_files.renamed(self.log_path, target)
        self.log_path = target
