"""Measures a cluster with real clients, each in a process of its own: produce, consume, and produce-to-consume.

`run` makes a topic of its own (unless one is named), starts the clients (`bench_worker`), lets them warm up, starts
them together, merges what they measured and removes the topic. An interrupt stops the clients; what they measured
until then is the result, marked as interrupted.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import queue
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

from millstream.cluster.answers import nearest
from millstream.cluster.connection import Connection
from millstream.cluster.errors import ClusterError, NotFound, Unreachable
from millstream.cluster.histogram import Histogram

Kind = Literal["produce", "consume", "latency"]
START_SECONDS = 60.0
_WARM_UP_SHARE = 10
_MOST_WARM_UP = {"produce": 10_000, "consume": 0, "latency": 200}


class Settings(NamedTuple):
    """What is measured."""

    kind: Kind
    records: int
    """Of all clients together; 0: until the time is over."""
    seconds: float
    """0: until the records are done."""
    size: int
    rate: float = 0.0
    """Records a second of all clients together; 0: as fast as it goes."""
    acks: str = "all"
    compression: str = "none"
    linger_ms: float = 5.0
    keys: int = 0
    clients: int = 1
    partitions: int = 1
    replication_factor: int = -1
    topic: str | None = None


class Result(NamedTuple):
    """What came out; times in milliseconds."""

    kind: str
    topic: str
    clients: int
    records: int
    bytes: int
    seconds: float
    records_per_second: float
    megabytes_per_second: float
    acknowledged_ms: dict[str, float] | None
    end_to_end_ms: dict[str, float] | None
    failures: int
    failure: str
    interrupted: bool


def is_loopback(connection: Connection) -> bool:
    """Whether all addresses are on this machine by their looks."""
    for host, _ in connection.addresses():
        try:
            local = ipaddress.ip_address(host).is_loopback
        except ValueError:
            local = host == "localhost"
        if not local:
            return False
    return True


def run(
    connection: Connection, settings: Settings, *, progress: Callable[[str, int], None], check: Callable[[], None]
) -> Result:
    """`progress` is told what happens and how many records are done; `check` raises KeyboardInterrupt when it is
    time."""
    with _topic(connection, settings) as (topic, partitions):
        if settings.kind == "consume" and settings.topic is None:
            _fill(connection, settings, topic, progress, check)
        return _measure(connection, settings, topic, partitions, progress, check)


@contextlib.contextmanager
def _topic(connection: Connection, settings: Settings) -> Iterator[tuple[str, int]]:
    with connection.admin() as admin:
        if settings.topic is not None:
            (found,) = admin.describe_topics([settings.topic])
            if found["error_code"]:
                raise NotFound(
                    f"--topic: there is no topic {settings.topic}{nearest(settings.topic, admin.list_topics())}"
                )
            yield settings.topic, len(found["partitions"])
            return
        name = f"millstream-bench-{uuid.uuid4().hex[:8]}"
        wanted = {"num_partitions": settings.partitions, "replication_factor": settings.replication_factor}
        admin.create_topics({name: wanted}, wait_for_metadata=True)
        try:
            yield name, settings.partitions
        finally:
            admin.delete_topics([name])


def _fill(
    connection: Connection,
    settings: Settings,
    topic: str,
    progress: Callable[[str, int], None],
    check: Callable[[], None],
) -> None:
    """Something to consume."""
    filling = settings._replace(kind="produce", rate=0.0, clients=1, acks="1", seconds=0.0)
    result = _measure(connection, filling, topic, 0, lambda _, done: progress("fill", done), check, warm_up=False)
    if result.failures:
        raise ClusterError(f"the topic for consuming could not be filled: {result.failure}")
    check()


def _measure(
    connection: Connection,
    settings: Settings,
    topic: str,
    partitions: int,
    progress: Callable[[str, int], None],
    check: Callable[[], None],
    *,
    warm_up: bool = True,
) -> Result:
    clients = min(settings.clients, partitions) if settings.kind == "consume" else settings.clients
    jobs = [_job(connection, settings, topic, partitions, index, clients, warm_up=warm_up) for index in range(clients)]
    workers = [_Process(job) for job in jobs]
    interrupted = False
    try:
        for worker in workers:
            worker.wait_until_ready(check)
        for worker in workers:
            worker.start()
        while any(worker.result is None for worker in workers):
            for worker in workers:
                worker.read(0.05)
            progress(settings.kind, sum(worker.done for worker in workers))
            try:
                check()
            except KeyboardInterrupt:
                if interrupted:
                    raise
                interrupted, check = True, _no_check
                for worker in workers:
                    worker.stop()
    finally:
        for worker in workers:
            worker.close()
    return _merge(settings, topic, [worker.result for worker in workers if worker.result is not None], interrupted)


def _no_check() -> None:
    """After the first interrupt the clients are on their way to the end."""


def _job(
    connection: Connection, settings: Settings, topic: str, partitions: int, index: int, clients: int, *, warm_up: bool
) -> dict[str, Any]:
    share = settings.records // clients + (index < settings.records % clients)
    if settings.kind == "consume" and settings.topic is None:
        share = 0  # all that it was filled with, however it lies in the partitions
    most = _MOST_WARM_UP[settings.kind]
    if settings.records:
        most = min(most, share // _WARM_UP_SHARE)
    return {
        **settings._asdict(),
        "bootstrap": connection.bootstrap,
        "properties": dict(connection.properties),
        "topic": topic,
        "records": share,
        "rate": settings.rate / clients,
        "partitions": partitions,
        "assigned": list(range(index, partitions, clients)),
        "warm_up": most if warm_up else 0,
    }


def _merge(settings: Settings, topic: str, results: list[dict[str, Any]], interrupted: bool) -> Result:
    acknowledged, arrived = Histogram(), Histogram()
    for result in results:
        acknowledged.merge(*result["acknowledged"])
        arrived.merge(*result["arrived"])
    records, size = sum(result["records"] for result in results), sum(result["bytes"] for result in results)
    seconds = max(result["ended"] for result in results) - min(result["started"] for result in results)
    return Result(
        settings.kind,
        topic,
        len(results),
        records,
        size,
        round(seconds, 6),
        round(records / seconds, 1) if seconds else 0.0,
        round(size / seconds / 10**6, 3) if seconds else 0.0,
        acknowledged.milliseconds() if acknowledged.total else None,
        arrived.milliseconds() if arrived.total else None,
        sum(result["failures"] for result in results),
        next((result["failure"] for result in results if result["failure"]), ""),
        interrupted,
    )


class _Process:
    """A client's process; what it prints is read by a thread."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.done = 0
        self.result: dict[str, Any] | None = None
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "millstream.cluster.bench_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for us: we tell it to stop
        )
        self._write(json.dumps(job))
        self._reader = threading.Thread(target=self._read_lines, daemon=True)
        self._reader.start()

    def _read_lines(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def wait_until_ready(self, check: Callable[[], None]) -> None:
        waited = 0.0
        while not self.read(0.1).get("ready"):
            check()
            waited += 0.1
            if waited > START_SECONDS:
                raise Unreachable(f"a client was not ready within {START_SECONDS:.0f} s: does the cluster answer?")

    def start(self) -> None:
        self._write("go")

    def stop(self) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def read(self, timeout: float) -> dict[str, Any]:
        """The next thing it says, if there is one in time."""
        try:
            line = self._lines.get(timeout=0.001 if self.result is not None else timeout)
        except queue.Empty:
            return {}
        if line is None:
            if self.result is None:
                raise ClusterError(f"a client ended by itself with status {self._process.wait()}")
            return {}
        said: dict[str, Any] = json.loads(line)
        if "error" in said:
            raise (
                Unreachable(said["error"])
                if said["exit_code"] == Unreachable.exit_code
                else ClusterError(said["error"])
            )
        if "done" in said:
            self.done = said["done"]
        elif "records" in said:
            self.result, self.done = said, said["records"]
        return said

    def close(self) -> None:
        self.stop()
        try:
            self._process.wait(10 if self.result is not None else 1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it has ended: its last words say why
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
