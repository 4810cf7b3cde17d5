"""Apache Kafka 4.3.1 itself, a one-node KRaft cluster started from its jars: the reference of every behaviour test.

Everything lives in one temporary folder (`data/`, `server.properties`, `server.log`), which goes away with the broker.
Both listeners are on free loopback ports. The broker is stopped by its process id, never by name.
"""

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from types import TracebackType

from support.java import java_command
from support.raw import RawClient
from support.settings import SETTINGS

BASE_PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class ApacheKafka:
    """A running Apache Kafka broker; a context manager."""

    def __init__(self, settings: dict[str, str] | None = None, *, folder: Path | None = None) -> None:
        self._own_folder = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="millstream-apache-kafka-"))
        self.data_folder = self.folder / "data"
        self.log_file = self.folder / "server.log"
        self._settings = {**SETTINGS, **(settings or {})}
        self._process: subprocess.Popen[bytes] | None = None
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
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        port, controller_port = free_port(), free_port()
        self.bootstrap_servers = f"127.0.0.1:{port}"
        properties = {
            **BASE_PROPERTIES,
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "log.dirs": str(self.data_folder),
            **self._settings,
        }
        file = self.folder / "server.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        if not (self.data_folder / "meta.properties").exists():
            cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
            formatting = ["kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}", "-c", str(file)]
            subprocess.run(java_command(*formatting), check=True, capture_output=True)
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                java_command("kafka.Kafka", str(file), heap="512m", log_level="info"),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
            )  # fmt: skip
        self._wait_until_ready()

    def _wait_until_ready(self, timeout: float = 60) -> None:
        """Until the broker answers Metadata with itself in it: unfenced and registered, not merely listening."""
        assert self._process is not None
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            with contextlib.suppress(OSError, EOFError), RawClient(self.bootstrap_servers, timeout=5) as client:
                if client.call("metadata", 12, topics=[]).brokers:
                    return
            time.sleep(0.1)
        tail = self.log_file.read_text(errors="replace")[-4000:]
        raise RuntimeError(f"Apache Kafka did not become ready; the end of its log:\n{tail}")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)
