"""The servers that are measured: each is a process of its own, with its default settings, on 127.0.0.1.

A system is started in a folder and found at `bootstrap`. Its CPU time and its resident memory are read from /proc, so
they are the server's alone, whatever the client does.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from millstream.engines import jars
from millstream.engines.kafka_layout import new as new_layout
from millstream.engines.ports import HOST, free_ports

START_SECONDS = 120.0
_TICKS = os.sysconf("SC_CLK_TCK")

KAFKA_JAVA_OPTIONS = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
"""Those of Kafka's own start script."""

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "log.segment.delete.delay.ms": "0"}
"""What both get beside their defaults: nobody waits for more members of a new group, and the files of a deleted topic
go at once, so that they are not written to disk during the next row."""


@dataclass
class Costs:
    """Of a block in which a server was watched, known at its end."""

    cpu_seconds: float = 0.0
    peak_memory: int = 0
    """Bytes."""


class System(ABC):
    """A server in a folder of its own."""

    name: str
    color: str
    durable = True
    """Whether it keeps the log on disk."""
    version = ""
    speaks_kafka = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_ports(1)[0]
        self.process: subprocess.Popen[bytes] | None = None
        self.used_topics: list[str] = []
        """Of the last run: they go when its costs have been read, so that their going is nobody's cost."""

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    @classmethod
    def is_available(cls) -> str | None:
        """None, or why it cannot be had on this machine."""
        return None

    @abstractmethod
    def command(self) -> Sequence[str]:
        """What is run; it stays in the foreground."""

    def prepare(self) -> None:  # noqa: B027 - most have nothing to do
        """What has to be done once, before the first start."""

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def launch(self) -> None:
        """The process, and nothing more."""
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment()
            )

    def start(self) -> None:
        """Prepares, launches and waits until somebody listens."""
        self.prepare()
        self.launch()
        self.wait_until_it_listens()

    def wait_until_it_listens(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                with socket.create_connection((HOST, self.port), timeout=1):
                    return
            except OSError:
                self.check_alive()
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{self.name} did not listen within {START_SECONDS:.0f} s") from None
                time.sleep(0.002)

    def check_alive(self) -> None:
        if self.process is None or self.process.poll() is not None:
            last = (self.folder / "server.log").read_text(errors="replace").splitlines()[-5:]
            raise RuntimeError(f"{self.name} does not run: " + " | ".join(last))

    def restart_if_it_ended(self) -> None:
        if self.process is not None and self.process.poll() is not None:
            self.launch()
            self.wait_until_it_listens()

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """As if the power had gone, but for the page cache."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if self.process is None:
            return
        self.process.send_signal(how)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @contextmanager
    def watched(self) -> Iterator[Costs]:
        """What the block costs the server."""
        costs = Costs()
        self._forget_peak_memory()
        before = self.cpu_seconds()
        yield costs
        costs.cpu_seconds = self.cpu_seconds() - before
        costs.peak_memory = self.peak_memory()

    def cpu_seconds(self) -> float:
        """User and system time of all its threads so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def _forget_peak_memory(self) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def peak_memory(self) -> int:
        """Bytes: the most that was resident since the server was last `watched`."""
        return self._memory("VmHWM:")

    def memory(self) -> int:
        """Bytes that are resident now."""
        return self._memory("VmRSS:")

    def _memory(self, field: str) -> int:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
        raise RuntimeError(f"/proc/{self.pid}/status has no {field}")


class Millstream(System):
    """`millstream serve`, as it comes."""

    name = "Millstream"
    color = "#1f77b4"

    def command(self) -> Sequence[str]:
        settings = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
        return [
            sys.executable, "-m", "millstream", "serve", "--listen", self.bootstrap,
            "--data", str(self.folder / "data"), *settings,
        ]  # fmt: skip


class ApacheKafka(System):
    """One node, broker and controller, from Maven Central's jars, with the Java options of its own start script."""

    name = "Apache Kafka"
    color = "#7f7f7f"

    def _java(self) -> list[str]:
        return [
            jars.find_java(), *KAFKA_JAVA_OPTIONS, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp",
            f"{jars.fetch()}/*",
        ]  # fmt: skip

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def prepare(self) -> None:
        if self._properties.exists():
            return
        (controller,) = free_ports(1)
        layout = new_layout(1, own_controller=False)._replace(
            broker_ports={1: self.port}, controller_ports={1: controller}
        )
        properties = layout.properties(1, self.folder / "data", SETTINGS)
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        arguments = ["format", f"--cluster-id={layout.cluster_id}", "-c", str(self._properties)]
        subprocess.run([*self._java(), "kafka.tools.StorageTool", *arguments], check=True, capture_output=True)

    def command(self) -> Sequence[str]:
        return [*self._java(), "kafka.Kafka", str(self._properties)]
