"""The kafka engine: Apache Kafka, 1 to n KRaft nodes as processes on this machine, from Maven Central's jars.

In the data folder:

    engine              the marker
    cluster.json        the plan (`kafka_layout`)
    node-<id>/          one for each node
      server.properties   written at each start
      data/               Kafka's own log directory, formatted once
      server.log          all that the node says; the one before is server.log.1
      pid                 its process id

Nodes are found again by their pid file, and known by the path of their settings file on their command line. So an
engine object can be made on the folder of a running cluster, in any process, to stop or start a single broker. Nodes
live in sessions of their own: Ctrl-C at the terminal does not reach them, `stop` does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from millstream.engines import folder, jars, kafka_layout, ports, processes
from millstream.engines.engine import Process
from millstream.engines.errors import EngineError, EngineInputError
from millstream.engines.kafka_layout import Layout
from millstream.jvm.progress import Progress, Step, silent

DEFAULT_PORT = 9092
START_SECONDS = 90.0
STOP_SECONDS = 30.0
LARGEST_LOG = 16 << 20
JAVA_OPTIONS = ("-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError", "-Djava.awt.headless=true")
HEAP_VARIABLE = "KAFKA_HEAP_OPTS"
DEFAULT_HEAP = "-Xmx512m"


class KafkaEngine:
    """A cluster of Apache Kafka in one data folder."""

    name = "kafka"

    def __init__(
        self,
        data: Path,
        *,
        brokers: int | None = None,
        port: int | None = None,
        own_controller: bool = False,
        settings: Mapping[str, str] | None = None,
        java_options: Sequence[str] = (),
        cache: Path | None = None,
        keep_open: Collection[int] = (),
    ) -> None:
        """`brokers`: as many as the folder has, or one. `port`: the first broker's, the others follow; 0: free ones."""
        self.data = data.resolve()
        self._settings = dict(settings or {})
        self._port = port
        self._java_options = tuple(java_options)
        self._cache = cache
        self._keep_open = tuple(keep_open)
        """File descriptors that the nodes inherit."""
        found = kafka_layout.load(self.data / "cluster.json")
        if found is None:
            self._layout = kafka_layout.new(1 if brokers is None else brokers, own_controller=own_controller)
        else:
            self._layout = found if brokers is None else kafka_layout.grown(found, brokers, self.data)

    # --- the engine ---

    @property
    def bootstrap(self) -> str:
        return self._layout.bootstrap

    def start(self, progress: Progress = silent) -> None:
        command = self._java_command(progress)
        folder.claim(self.data, self.name)
        running = [node for node in self._layout.nodes if self.pid(node) is not None]
        if running:
            raise EngineError(
                f"node {', '.join(map(str, running))} of the cluster in {self.data} still runs: "
                f"`millstream down --data {self.data}` stops it"
            )
        self._layout = self._with_ports()
        self._layout.save(self.data / "cluster.json")
        for node in self._layout.nodes:
            self._write_properties(node)
        self._format(command, progress)
        try:
            for node in self._layout.nodes:
                self._launch(command, node)
            self._wait_until_ready(self._layout.brokers, progress)
        except BaseException:
            self.stop(grace=1)
            raise

    def stop(self, grace: float = STOP_SECONDS) -> None:
        """Brokers first, all at once, so that each can hand its partitions over while there are controllers."""
        self._reload()
        brokers = set(self._layout.brokers)
        for nodes in (brokers, set(self._layout.nodes) - brokers):
            pids = {node: pid for node in nodes if (pid := self.pid(node)) is not None}
            processes.end(pids.values(), str(self.data), grace=grace)
            for node in pids:
                (self._folder(node) / "pid").unlink(missing_ok=True)

    def processes(self) -> list[Process]:
        self._reload()
        found = []
        for node in self._layout.nodes:
            port = self._layout.broker_ports.get(node)
            found.append(
                Process(
                    "controller" if port is None else "broker",
                    node,
                    self._layout.roles(node),
                    None if port is None else f"{ports.HOST}:{port}",
                    self.pid(node),
                    self._folder(node) / "server.log",
                )
            )
        return found

    def health(self) -> list[str]:
        return [f"{node.name} {node.node_id} is down (see {node.log})" for node in self.processes() if node.pid is None]

    # --- single nodes ---

    def pid(self, node: int) -> int | None:
        """The process id of a node; None if it does not run."""
        try:
            pid = int((self._folder(node) / "pid").read_text())
        except (OSError, ValueError):
            return None
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)  # it may be our own child, and a zombie
        return pid if processes.is_running(pid, self._mark(node)) else None

    def start_broker(self, node: int, progress: Progress = silent) -> None:
        """Starts one that was stopped or killed, or one more; returns when it is part of the cluster.

        One more has the next free id. It gets the settings that the others were started with.
        """
        self._reload()
        command = self._java_command(progress)
        if node == self._layout.brokers[-1] + 1:
            self._add_broker(node)
            self._format(command, progress)
        self._check_node(node)
        if self.pid(node) is not None:
            raise EngineError(f"broker {node} runs already")
        self._launch(command, node)
        if node in self._layout.broker_ports:
            self._wait_until_ready([node], progress)

    def stop_broker(self, node: int, grace: float = STOP_SECONDS) -> None:
        """SIGTERM: the broker hands its partitions over and goes."""
        processes.end([self._running_pid(node)], self._mark(node), grace=grace)

    def kill_broker(self, node: int) -> None:
        """SIGKILL, as if its machine had gone."""
        processes.kill(self._running_pid(node), self._mark(node))

    def pause_broker(self, node: int) -> None:
        """SIGSTOP: it is there and does nothing, as behind a broken network; `resume_broker` ends that."""
        os.kill(self._running_pid(node), signal.SIGSTOP)

    def resume_broker(self, node: int) -> None:
        os.kill(self._running_pid(node), signal.SIGCONT)

    def _running_pid(self, node: int) -> int:
        self._reload()
        self._check_node(node)
        pid = self.pid(node)
        if pid is None:
            raise EngineError(f"broker {node} does not run")
        return pid

    def _check_node(self, node: int) -> None:
        if node not in self._layout.nodes:
            known = ", ".join(map(str, self._layout.nodes))
            more = self._layout.brokers[-1] + 1
            raise EngineInputError(f"there is no broker {node}; there are {known}, and {more} would be one more")

    def _reload(self) -> None:
        """Another process may have added a broker."""
        self._layout = kafka_layout.load(self.data / "cluster.json") or self._layout

    def _add_broker(self, node: int) -> None:
        first = self._layout.brokers[0]
        lines = Path(self._mark(first)).read_text().splitlines()
        self._settings = dict(line.split("=", 1) for line in lines)
        layout = kafka_layout.grown(self._layout, node, self.data)
        near = max(self._layout.broker_ports.values()) + 1
        (port,) = [near] if ports.is_free(near) else ports.free_ports(1)
        self._layout = layout._replace(broker_ports={**layout.broker_ports, node: port})
        self._layout.save(self.data / "cluster.json")
        self._write_properties(node)

    # --- how a node comes to be ---

    def _folder(self, node: int) -> Path:
        return self.data / f"node-{node}"

    def _mark(self, node: int) -> str:
        return str(self._folder(node) / "server.properties")

    def _java_command(self, progress: Progress) -> list[str]:
        java = jars.find_java()
        jar_folder = jars.fetch(self._cache, progress)
        heap = os.environ.get(HEAP_VARIABLE, DEFAULT_HEAP).split()
        logging = (
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS",
        )
        return [java, *heap, *JAVA_OPTIONS, *self._java_options, *logging, "-cp", f"{jar_folder}/*"]

    def _with_ports(self) -> Layout:
        """The plan with ports that are free now; those of the last time if no others are asked for."""
        layout = self._layout
        broker_ports = dict(layout.broker_ports)
        if self._port is None and any(broker_ports.values()):
            unset = [node for node, port in broker_ports.items() if not port]
            last = max(broker_ports.values())
            broker_ports.update({node: last + 1 + index for index, node in enumerate(unset)})
        elif self._port == 0:
            broker_ports = dict(zip(broker_ports, ports.free_ports(len(broker_ports)), strict=True))
        else:
            first = self._port or DEFAULT_PORT
            broker_ports = {node: first + index for index, node in enumerate(layout.brokers)}
        taken = [port for port in broker_ports.values() if not ports.is_free(port)]
        if taken:
            raise EngineError(
                f"port {', '.join(map(str, taken))} is taken, perhaps by another server: "
                "give another first port with --port (0 takes free ones)"
            )
        controller_ports = dict(zip(layout.controllers, ports.free_ports(len(layout.controllers)), strict=True))
        return layout._replace(broker_ports=broker_ports, controller_ports=controller_ports)

    def _write_properties(self, node: int) -> None:
        place = self._folder(node)
        place.mkdir(parents=True, exist_ok=True)
        properties = self._layout.properties(node, place / "data", self._settings)
        lines = [f"{name}={value}\n" for name, value in sorted(properties.items())]
        (place / "server.properties").write_text("".join(lines))

    def _format(self, command: list[str], progress: Progress) -> None:
        """The storage of the nodes that have none yet, at the same time: each takes a JVM a second or two."""
        new = [node for node in self._layout.nodes if not (self._folder(node) / "data" / "meta.properties").exists()]
        if not new:
            return
        progress(Step(f"formatting the storage of {len(new)} node{'s' * (len(new) > 1)}"))
        formatting = ["kafka.tools.StorageTool", "format", f"--cluster-id={self._layout.cluster_id}", "-c"]
        runs = [
            subprocess.Popen(
                [*command, *formatting, self._mark(node)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            for node in new
        ]
        outputs = [run.communicate()[0] for run in runs]
        for node, run, output in zip(new, runs, outputs, strict=True):
            if run.returncode != 0:
                raise EngineError(f"the storage of node {node} cannot be formatted: {processes.reason_in(output)}")

    def _launch(self, command: list[str], node: int) -> None:
        place = self._folder(node)
        log = place / "server.log"
        if log.exists() and log.stat().st_size > LARGEST_LOG:
            log.replace(place / "server.log.1")
        with log.open("ab") as out:
            process = subprocess.Popen(
                [*command, "kafka.Kafka", self._mark(node)],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=place,
                start_new_session=True, pass_fds=self._keep_open,
            )  # fmt: skip
        (place / "pid").write_text(f"{process.pid}\n")
        process.returncode = 0  # it is watched and reaped by its id from here on; Popen need not warn

    def _wait_until_ready(self, brokers: Sequence[int], progress: Progress) -> None:
        """Until each of them is registered, un-fenced, and itself knows of all brokers that run."""
        text = "waiting for the broker" if len(brokers) == 1 else f"waiting for {len(brokers)} brokers"
        deadline = time.monotonic() + START_SECONDS
        ready: set[int] = set()
        running = {node for node in self._layout.brokers if self.pid(node) is not None}
        while len(ready) < len(brokers):
            progress(Step(text, len(ready), len(brokers)))
            for node in brokers:
                if self.pid(node) is None:
                    log = self._folder(node) / "server.log"
                    reason = processes.reason_in(log.read_text(errors="replace"))
                    raise EngineError(f"broker {node} ended: {reason} (see {log})")
                if node not in ready and known_brokers(self._layout.broker_ports[node]) >= running:
                    ready.add(node)
            if time.monotonic() > deadline:
                late = ", ".join(str(node) for node in brokers if node not in ready)
                raise EngineError(
                    f"broker {late} was not ready within {START_SECONDS:.0f} s (see {self.data}/node-*/server.log)"
                )
            if len(ready) < len(brokers):
                time.sleep(0.1)
        progress(Step(text, len(ready), len(brokers)))


def known_brokers(port: int) -> set[int]:
    """The brokers that take part in the cluster, as the one at this port knows them; none if it does not answer."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    if ports.is_free(port):
        return set()
    client = AdminClient({"bootstrap.servers": f"{ports.HOST}:{port}", "log_level": 0, "client.id": "millstream-up"})
    try:
        return set(client.list_topics(timeout=3).brokers)
    except KafkaException:
        return set()
