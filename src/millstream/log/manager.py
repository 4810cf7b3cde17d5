"""The data folder: all logs, the lock on the folder, the checkpoints, and the upkeep that the server calls for.

`open` takes the lock (a second server on the same folder is refused, the first is unharmed), reads identity and
checkpoints, and opens every `<topic>-<partition>` folder. A deleted log's folder is renamed to
`<topic>-<partition>.<32 hex digits>-delete` at once and removed later, so its name is free again.

Nothing here schedules: `retain`, `flush_due`, `write_indexes`, `expire_producers`, `checkpoint` and `remove_deleted`
are plain methods for a server's timers, as is `LogCleaner.step`. They return quickly; what blocks goes to the
workers.
"""

import errno
import fcntl
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final
from uuid import UUID, uuid4

from millstream.log import checkpoints
from millstream.log.checkpoints import TopicPartition
from millstream.log.clock import Clock, SystemClock
from millstream.log.config import LogConfig
from millstream.log.context import LogContext
from millstream.log.filesystem import DiskFileSystem, FileSystem
from millstream.log.flush import GroupCommit, InlineWorker, Worker
from millstream.log.large_batches import LargeBatches
from millstream.log.open_files import OpenFiles
from millstream.log.partition_log import PartitionLog
from millstream.log.producer_state import DEFAULT_EXPIRATION_MS
from millstream.log.recovery import recover_log
from millstream.log.retention import delete_old_segments
from millstream.wire.errors import ErrorCode, KafkaError

LOCK_NAME: Final = ".lock"
DELETE_SUFFIX: Final = "-delete"
_DIRECTORY: Final = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>\d+)")


class DataFolderLockedError(Exception):
    """Another process uses the data folder."""


class LogManager:
    def __init__(
        self,
        root: str,
        *,
        file_system: FileSystem | None = None,
        clock: Clock | None = None,
        worker: Worker | None = None,
        producer_expiration_ms: int = DEFAULT_EXPIRATION_MS,
        max_open_files: int | None = None,
        sync: bool = True,
    ) -> None:
        """`worker` runs fsyncs; without `sync` (a folder that is thrown away) nothing waits for the disk."""
        self.root = root.rstrip("/")
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.file_system: FileSystem = DiskFileSystem() if file_system is None else file_system
        self.clock: Clock = SystemClock() if clock is None else clock
        self.worker: Worker = InlineWorker() if worker is None else worker
        self.group_commit = GroupCommit(self.worker)
        self.cleaner_offsets: dict[TopicPartition, int] = {}
        self.was_clean = False
        self.scanned_bytes = 0
        self.truncated_bytes = 0
        self._sync = sync
        self._context = LogContext(
            OpenFiles(self.file_system, max_open_files),
            LargeBatches(),
            self.clock,
            self.worker,
            producer_expiration_ms,
            self._checkpoint_soon,
            sync,
        )
        self._lock_fd: int | None = None
        self._removals: list[tuple[int, str]] = []
        self._checkpoint_running = False
        self._checkpoint_wanted = False

    def set_producer_expiration(self, expiration_ms: int) -> None:
        """How long a silent producer is remembered, by the logs that are open and those to come."""
        self._context = self._context._replace(producer_expiration_ms=expiration_ms)
        for log in self:
            log.producers.expiration_ms = expiration_ms

    # --- start

    def lock(self) -> None:
        """Take the data folder for this process. Raises DataFolderLockedError."""
        self.file_system.make_directory(self.root)
        fd = os.open(f"{self.root}/{LOCK_NAME}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise DataFolderLockedError(f"the data folder {self.root} is in use by another process") from error
            raise
        self._lock_fd = fd

    @property
    def context(self) -> LogContext:
        return self._context

    def open(
        self, config_of: Callable[[str], LogConfig], keep: Callable[[str, int, UUID | None], bool] | None = None
    ) -> None:
        """Lock the folder and open all logs; `config_of` gives a topic's config.

        With `keep`, a log for which it says no belongs to a topic that is no more: its folder is deleted. It is asked
        with the topic id that the folder was made for, None if that is not known.
        """
        if self._lock_fd is None:
            self.lock()
        file_system = self.file_system
        self.was_clean = checkpoints.take_clean_shutdown(file_system, self.root)
        recovery_points = self._read_offsets(checkpoints.RECOVERY_POINT_NAME)
        log_starts = self._read_offsets(checkpoints.LOG_START_NAME)
        self.cleaner_offsets = self._read_offsets(checkpoints.CLEANER_NAME)
        now = self.clock.now_ms()
        for entry in file_system.entries(self.root):
            if not entry.is_directory:
                continue
            path = f"{self.root}/{entry.name}"
            if entry.name.endswith(DELETE_SUFFIX):
                self._removals.append((now, path))
                continue
            match = _DIRECTORY.fullmatch(entry.name)
            if match is None:
                continue
            topic, partition = match["topic"], int(match["partition"])
            topic_id = checkpoints.read_partition_metadata(file_system, path)
            if keep is not None and not keep(topic, partition, topic_id):
                self._rename_to_delete(topic, partition, now)
                continue
            key = topic, partition
            recovered = recover_log(
                self._context,
                path,
                topic,
                partition,
                topic_id or UUID(int=0),
                config_of(topic),
                clean=self.was_clean,
                recovery_point=recovery_points.get(key, 0),
                log_start_offset=log_starts.get(key, 0),
            )
            self.scanned_bytes += recovered.scanned_bytes
            self.truncated_bytes += recovered.truncated_bytes
            self.logs[key] = recovered.log

    def _read_offsets(self, name: str) -> dict[TopicPartition, int]:
        return checkpoints.read_offsets(self.file_system, f"{self.root}/{name}")

    def identity(self, *, node_id: int, cluster_id: Callable[[], str]) -> dict[str, str]:
        """`meta.properties`, made with a new directory id (and the given cluster id) if it is not there."""
        path = f"{self.root}/{checkpoints.META_NAME}"
        properties = checkpoints.read_properties(self.file_system, path)
        if properties is None:
            properties = {
                "cluster.id": cluster_id(),
                "directory.id": checkpoints.encode_uuid(uuid4()),
                "node.id": str(node_id),
                "version": "1",
            }
            checkpoints.write_properties(self.file_system, path, properties)
        return properties

    # --- logs

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self.logs.get((topic, partition))

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(list(self.logs.values()))

    def create(self, topic: str, partition: int, topic_id: UUID, config: LogConfig) -> PartitionLog:
        """A new, empty log; the one that is there if it is. Raises KAFKA_STORAGE_ERROR."""
        existing = self.logs.get((topic, partition))
        if existing is not None:
            return existing
        path = f"{self.root}/{topic}-{partition}"
        try:
            if checkpoints.read_partition_metadata(self.file_system, path) not in (None, topic_id):
                # What a topic of the same name left behind when its folder could not be put aside.
                self._rename_to_delete(topic, partition, self.clock.now_ms())
            recovered = recover_log(
                self._context,
                path,
                topic,
                partition,
                topic_id,
                config,
                clean=False,
                recovery_point=0,
                log_start_offset=0,
            )
            checkpoints.write_partition_metadata(self.file_system, path, topic_id, sync=False)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{topic}-{partition}: {error}") from error
        self.logs[topic, partition] = recovered.log
        return recovered.log

    def delete(self, topic: str, partition: int) -> None:
        """Take a log out of use; its files are removed after file.delete.delay.ms."""
        log = self.logs.pop((topic, partition), None)
        if log is None:
            return
        log.closed = True
        log.wake_listeners()
        self._context.open_files.forget_under(log.directory)
        self.cleaner_offsets.pop((topic, partition), None)
        try:
            self._rename_to_delete(topic, partition, self.clock.now_ms() + log.config.file_delete_delay_ms)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{topic}-{partition}: {error}") from error
        self._checkpoint_soon()

    def _rename_to_delete(self, topic: str, partition: int, when: int) -> None:
        suffix = f".{uuid4().hex}{DELETE_SUFFIX}"
        # The folder's name has at most 255 bytes; a long topic name is cut, as Kafka does.
        name = f"{topic[: 255 - len(suffix) - len(str(partition)) - 1]}-{partition}{suffix}"
        self.file_system.rename(f"{self.root}/{topic}-{partition}", f"{self.root}/{name}")
        self._removals.append((when, f"{self.root}/{name}"))

    # --- upkeep, for the server's timers

    def retain(self) -> int:
        """Delete the segments that the topics need not keep. For log.retention.check.interval.ms."""
        now = self.clock.now_ms()
        return sum(delete_old_segments(log, now) for log in self)

    def flush_due(self) -> None:
        """Flush the logs whose flush.ms is over. For log.flush.scheduler.interval.ms."""
        now = self.clock.now_ms()
        for log in self:
            if log.flushed_offset < log.log_end_offset and now - log.last_flush_ms >= log.config.flush_ms:
                self.group_commit.request(log, lambda _: None)

    def write_indexes(self) -> None:
        """Bring the index files of the active segments up to date, for whoever looks at them from outside."""
        for log in self:
            with suppress(OSError):  # they are rebuilt after a crash, and written again at the next turn
                log.segments.active.write_indexes()

    def expire_producers(self) -> int:
        """Forget producers that were silent for long. For producer.id.expiration.check.interval.ms."""
        now = self.clock.now_ms()
        return sum(len(log.producers.expire(now)) for log in self)

    def remove_deleted(self) -> None:
        """Remove the files and folders whose delay is over, in the worker."""
        now = self.clock.now_ms()
        files = [path for log in self for path in log.segments.due_removals(now)]
        folders = [path for when, path in self._removals if when <= now]
        self._removals = [removal for removal in self._removals if removal[0] > now]
        if not files and not folders:
            return

        def remove() -> None:
            for path in files:
                self.file_system.remove(path)
            for path in folders:
                self.file_system.remove_tree(path)

        self.worker.submit(remove, lambda _: None)

    # --- checkpoints

    def checkpoint(self) -> None:
        """Write the root's checkpoints, in the worker. For log.flush.offset.checkpoint.interval.ms."""
        self._checkpoint_soon()

    def _checkpoint_soon(self) -> None:
        """One write at a time; whatever moves meanwhile is in the next one."""
        self._checkpoint_wanted = True
        if self._checkpoint_running:
            return
        self._checkpoint_running = True
        self._checkpoint_wanted = False
        files = self._checkpoint_files()

        def write() -> None:
            self._write_checkpoints(files)

        def done(_: BaseException | None) -> None:
            self._checkpoint_running = False
            if self._checkpoint_wanted:
                self._checkpoint_soon()

        self.worker.submit(write, done)

    def _checkpoint_files(self) -> dict[str, bytes]:
        logs = self.logs.items()
        starts = {key: log.log_start_offset for key, log in logs if log.log_start_offset > log.segments[0].base_offset}
        return {
            checkpoints.RECOVERY_POINT_NAME: checkpoints.encode_offsets({key: log.recovery_point for key, log in logs}),
            checkpoints.LOG_START_NAME: checkpoints.encode_offsets(starts),
            checkpoints.REPLICATION_NAME: checkpoints.encode_offsets({key: log.high_watermark for key, log in logs}),
            checkpoints.CLEANER_NAME: checkpoints.encode_offsets(self.cleaner_offsets),
        }

    def _write_checkpoints(self, files: dict[str, bytes]) -> None:
        for name, content in files.items():
            self.file_system.write_atomically(f"{self.root}/{name}", content, sync=self._sync)

    # --- stop

    def close(self, broker_epoch: int = -1) -> None:
        """Close all logs, write the checkpoints and, if all went well, the mark of a clean stop. Blocks."""
        if self._lock_fd is None:
            return
        clean = True
        for log in self:
            try:
                log.close()
            except KafkaError:
                clean = False
        try:
            self._write_checkpoints(self._checkpoint_files())
            if clean:
                checkpoints.write_clean_shutdown(self.file_system, self.root, broker_epoch)
        except OSError:
            pass  # no mark of a clean stop: the next start recovers
        self.release()

    def release(self) -> None:
        """Give up the lock on the folder."""
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None
