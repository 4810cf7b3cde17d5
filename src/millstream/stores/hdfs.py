"""HDFS: a name node and a data node, both in one JVM, from Maven Central's jars.

Hadoop's own test cluster is what runs them, in the version of the Hadoop client inside PySpark. Its files are formatted
at the first start. Spark reaches it by `url` and needs nothing but `client_settings`: each client says itself how many
copies of its files there should be, and here is room for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from millstream.engines import ports
from millstream.jvm.maven import JarSet
from millstream.jvm.progress import Progress
from millstream.stores.java import JavaStore

HADOOP_VERSION = "3.5.0"
HDFS = JarSet(
    name=f"hdfs-{HADOOP_VERSION}",
    title=f"HDFS {HADOOP_VERSION}",
    dependencies=(
        f"org.apache.hadoop:hadoop-client-minicluster:{HADOOP_VERSION}",
        "org.slf4j:slf4j-simple:1.7.36",
    ),
    needed=(f"hadoop-client-runtime-{HADOOP_VERSION}.jar", f"hadoop-client-api-{HADOOP_VERSION}.jar"),
)


class Hdfs(JavaStore):
    """A file system of one name node and one data node."""

    title = "HDFS"
    jars = HDFS
    client_settings: ClassVar[Mapping[str, str]] = {"dfs.replication": "1"}

    def __init__(self, folder: Path | None = None, *, port: int | None = None, cache: Path | None = None) -> None:
        super().__init__(folder, port=port, cache=cache)
        (self.web_port,) = ports.free_ports(1)

    @property
    def url(self) -> str:
        return f"hdfs://{self.host}:{self.port}"

    @property
    def web_url(self) -> str:
        """WebHDFS: the file system by HTTP."""
        return f"http://{self.host}:{self.web_port}/webhdfs/v1"

    @property
    def _ready_file(self) -> Path:
        return self.folder / "ready.json"

    def _prepare(self, progress: Progress) -> None:
        super()._prepare(progress)
        self._ready_file.unlink(missing_ok=True)

    def _launch(self) -> None:
        data = self.folder / "data"
        arguments = ["-datanodes", "1", "-nnport", str(self.port), "-httpport", str(self.web_port)]
        if not (data / "name-0-1" / "current" / "VERSION").exists():
            arguments.append("-format")
        settings = {
            "hdfs.minidfs.basedir": str(data),
            "dfs.permissions.enabled": "false",
            "dfs.namenode.safemode.extension": "0",
            **self.client_settings,
        }
        for name, value in settings.items():
            arguments += ["-D", f"{name}={value}"]
        main = "org.apache.hadoop.test.MiniDFSClusterManager"
        logging = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true")
        self._run(
            self._java_command(main, *arguments, "-writeDetails", str(self._ready_file), heap="512m", options=logging)
        )

    def _answers(self) -> bool:
        return self._ready_file.exists()  # written when both nodes have found one another
