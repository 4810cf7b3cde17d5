"""What the tests of the log need again and again: a log in a temporary folder, a clock to turn, batches to append."""

from pathlib import Path
from typing import Any
from uuid import UUID

from log.faulty_filesystem import FaultyFileSystem
from millstream.log.config import LogConfig
from millstream.log.context import LogContext
from millstream.log.fetch import READ_UNCOMMITTED, Isolation
from millstream.log.filesystem import FileSystem
from millstream.log.flush import Done, InlineWorker, Work, Worker
from millstream.log.large_batches import LargeBatches
from millstream.log.open_files import OpenFiles
from millstream.log.partition_log import PartitionLog
from millstream.log.recovery import Recovered, recover_log
from millstream.wire.batches import Record, build_batch, iterate_headers, read_records
from millstream.wire.compression import Compression

START_MS = 1_700_000_000_000
TOPIC_ID = UUID(int=7)


class ManualClock:
    def __init__(self, now: int = START_MS) -> None:
        self.now = now

    def now_ms(self) -> int:
        return self.now


class ManualWorker:
    """Keeps the work until it is told to do it."""

    def __init__(self) -> None:
        self.queue: list[tuple[Work, Done]] = []

    def submit(self, work: Work, done: Done) -> None:
        self.queue.append((work, done))

    def run(self) -> None:
        queue, self.queue = self.queue, []
        for work, done in queue:
            InlineWorker().submit(work, done)


class Harness:
    """One log that can be opened, closed, crashed and opened again."""

    def __init__(self, root: Path, config: LogConfig | None = None, *, worker: Worker | None = None) -> None:
        self.root = root
        self.directory = str(root / "topic-0")
        self.config = LogConfig() if config is None else config
        self.file_system = FaultyFileSystem()
        self.clock = ManualClock()
        self.worker: Worker = InlineWorker() if worker is None else worker
        self.checkpoints = 0
        self.context = self._new_context(self.file_system)
        self.log = self.open().log

    def _new_context(self, file_system: FileSystem) -> LogContext:
        def count() -> None:
            self.checkpoints += 1

        return LogContext(OpenFiles(file_system, limit=8), LargeBatches(), self.clock, self.worker, 86_400_000, count)

    def open(self, *, clean: bool = False, recovery_point: int = 0, log_start_offset: int = 0) -> Recovered:
        self.context = self._new_context(self.file_system)
        recovered = recover_log(
            self.context,
            self.directory,
            "topic",
            0,
            TOPIC_ID,
            self.config,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
        )
        self.log = recovered.log
        return recovered

    def reopen(self, *, clean: bool = True) -> Recovered:
        """Stop and start again: cleanly, or as after kill -9 (everything written is there)."""
        start, point = self.log.log_start_offset, self.log.recovery_point
        if clean:
            self.log.close()
            point = self.log.recovery_point
        return self.open(clean=clean, recovery_point=point, log_start_offset=start)

    def append(self, *values: bytes | None, **options: Any) -> int:
        """Append records without keys; returns the base offset."""
        return self.log.append(batch(*values, now=self.clock.now, **options)).base_offset


def batch(*values: bytes | None, key: bytes | None = None, now: int = START_MS, **options: Any) -> bytes:
    records = [Record(index, now, key, value) for index, value in enumerate(values)]
    return build_batch(records, **options)


def keyed(*pairs: tuple[bytes, bytes | None], now: int = START_MS, codec: Compression = Compression.NONE) -> bytes:
    records = [Record(index, now, key, value) for index, (key, value) in enumerate(pairs)]
    return build_batch(records, compression=codec)


def records_of(log: PartitionLog, isolation: Isolation = READ_UNCOMMITTED, max_bytes: int = 1 << 20) -> list[Record]:
    """All records a consumer of this isolation gets, fetch by fetch; markers are left out."""
    found: list[Record] = []
    offset = log.log_start_offset
    while True:
        part = log.read(offset, max_bytes, isolation=isolation)
        data = part.read_all()
        aborted = sorted(part.aborted or [], key=lambda entry: entry[1])
        open_aborted: set[int] = set()
        before = offset
        for position, header in iterate_headers(data):
            while aborted and aborted[0][1] <= header.last_offset:
                open_aborted.add(aborted.pop(0)[0])
            if header.next_offset <= offset:
                continue
            if header.is_control:
                open_aborted.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in open_aborted):
                found += [record for record in read_records(data, position, header) if record.offset >= offset]
            offset = header.next_offset
        if offset == before:
            return found
