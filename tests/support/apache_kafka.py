"""Apache Kafka 4.3.1 itself, one KRaft node started by our own kafka engine: the reference of every behaviour test.

Everything lives in one temporary folder, which goes away with the broker, on free loopback ports.
"""

import shutil
import tempfile
from pathlib import Path
from types import TracebackType

from millstream.engines.kafka import KafkaEngine
from support.java import kafka_cache
from support.settings import SETTINGS

BASE_SETTINGS = {"share.coordinator.state.topic.num.partitions": "1"}
JAVA_OPTIONS = ("-XX:TieredStopAtLevel=1",)


class ApacheKafka:
    """A running Apache Kafka broker; a context manager."""

    def __init__(self, settings: dict[str, str] | None = None, *, folder: Path | None = None) -> None:
        self._own_folder = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="millstream-apache-kafka-"))
        self.data_folder = self.folder / "node-1" / "data"
        self.log_file = self.folder / "node-1" / "server.log"
        self._engine = KafkaEngine(
            self.folder,
            port=0,
            settings={**BASE_SETTINGS, **SETTINGS, **(settings or {})},
            java_options=JAVA_OPTIONS,
            cache=kafka_cache(),
        )
        self.bootstrap_servers = ""

    def __enter__(self) -> "ApacheKafka":
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        pid = self._engine.pid(1)
        assert pid is not None
        return pid

    def start(self) -> None:
        self._engine.start()
        self.bootstrap_servers = self._engine.bootstrap

    def stop(self) -> None:
        self._engine.stop()
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)
