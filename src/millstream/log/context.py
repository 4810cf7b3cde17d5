"""What all logs of a data folder share."""

from collections.abc import Callable
from typing import NamedTuple

from millstream.log.clock import Clock
from millstream.log.filesystem import FileSystem
from millstream.log.flush import Worker
from millstream.log.large_batches import LargeBatches
from millstream.log.open_files import OpenFiles


class LogContext(NamedTuple):
    open_files: OpenFiles
    large_batches: LargeBatches
    clock: Clock
    worker: Worker
    producer_expiration_ms: int
    # Called when a log's recovery point or log start offset moved: the checkpoints are to be written.
    checkpoint_needed: Callable[[], None]
    # Off for a data folder that is thrown away anyway.
    sync_on_close: bool = True

    @property
    def file_system(self) -> FileSystem:
        return self.open_files.file_system
