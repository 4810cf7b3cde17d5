"""Cassandra 5, a ring of one node, from Maven Central's jars; nobody has to log in.

The settings are written at each start, for what they say (ports, folders) may be new. A write is acknowledged when the
commit log has it on disk; Cassandra's default, every ten seconds, would lose acknowledged writes when it is killed.
"""

from __future__ import annotations

import json
from pathlib import Path

from millstream.engines import ports
from millstream.jvm.maven import JarSet
from millstream.jvm.progress import Progress
from millstream.stores.java import JavaStore

CASSANDRA_VERSION = "5.0.6"
CASSANDRA = JarSet(
    name=f"cassandra-{CASSANDRA_VERSION}",
    title=f"Cassandra {CASSANDRA_VERSION}",
    dependencies=(f"org.apache.cassandra:cassandra-all:{CASSANDRA_VERSION}",),
    needed=("logback-classic-1.2.12.jar",),
)

# What Cassandra reaches for inside Java 17.
EXPORTS = {
    "java.base": ("jdk.internal.misc", "jdk.internal.ref", "sun.nio.ch", "java.lang.ref"),
    "java.management.rmi": ("com.sun.jmx.remote.internal.rmi",),
    "java.rmi": ("sun.rmi.registry", "sun.rmi.server"),
    "java.sql": ("java.sql",),
    "jdk.unsupported": ("sun.misc",),
    "jdk.compiler": ("com.sun.tools.javac.file",),
}
OPENS = {
    "java.base": (
        "java.io", "java.lang", "java.lang.module", "java.nio", "java.util", "java.util.concurrent",
        "java.util.concurrent.atomic", "jdk.internal.loader", "jdk.internal.math", "jdk.internal.module",
        "jdk.internal.ref", "jdk.internal.reflect", "jdk.internal.util.jar", "sun.nio.ch",
    ),
    "jdk.management": ("com.sun.management.internal",),
}  # fmt: skip
LOGGING = """<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{ISO8601} %-5level %logger{0} - %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
"""
OPTIONS_FRAME = bytes([4, 0, 0, 0, 5, 0, 0, 0, 0])
SUPPORTED = 6


class Cassandra(JavaStore):
    """A Cassandra node."""

    title = "Cassandra"
    jars = CASSANDRA
    start_seconds = 120
    datacenter = "datacenter1"

    def __init__(
        self, folder: Path | None = None, *, port: int | None = None, cache: Path | None = None, heap: str = "512m"
    ) -> None:
        super().__init__(folder, port=port, cache=cache)
        self._heap = heap

    def _prepare(self, progress: Progress) -> None:
        super()._prepare(progress)
        (self.folder / "logback.xml").write_text(LOGGING)
        (self.folder / "cassandra.yaml").write_text(json.dumps(self._settings(), indent=2))  # all JSON is YAML

    def _launch(self) -> None:
        properties = {
            "cassandra.config": f"file://{self.folder}/cassandra.yaml",
            "cassandra.storagedir": str(self.folder),
            "logback.configurationFile": str(self.folder / "logback.xml"),
            "cassandra-foreground": "yes",
            "cassandra.ring_delay_ms": "1",
            "cassandra.skip_wait_for_gossip_to_settle": "0",
            "cassandra.shutdown_announce_in_ms": "0",
            "cassandra.memtable_row_overhead_computation_step": "1000",  # the default takes more than a second
        }
        options = [f"-D{name}={value}" for name, value in properties.items()]
        for option, table in (("--add-exports", EXPORTS), ("--add-opens", OPENS)):
            options += [f"{option}={module}/{name}=ALL-UNNAMED" for module, names in table.items() for name in names]
        main = "org.apache.cassandra.service.CassandraDaemon"
        self._run(self._java_command(main, heap=self._heap, options=options))

    def _answers(self) -> bool:
        return self._ask(OPTIONS_FRAME)[4:5] == bytes([SUPPORTED])

    def _settings(self) -> dict[str, object]:
        (storage_port,) = ports.free_ports(1)
        seeds = [{"seeds": f"{self.host}:{storage_port}"}]
        return {
            "cluster_name": "millstream",
            "num_tokens": 1,
            "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
            "endpoint_snitch": "SimpleSnitch",
            "seed_provider": [{"class_name": "org.apache.cassandra.locator.SimpleSeedProvider", "parameters": seeds}],
            "listen_address": self.host,
            "storage_port": storage_port,
            "rpc_address": self.host,
            "native_transport_port": self.port,
            "commitlog_sync": "batch",
            "commitlog_segment_size": "8MiB",
            "data_file_directories": [str(self.folder / "data")],
            "commitlog_directory": str(self.folder / "commitlog"),
            "saved_caches_directory": str(self.folder / "saved_caches"),
            "hints_directory": str(self.folder / "hints"),
            "cdc_raw_directory": str(self.folder / "cdc_raw"),
        }
