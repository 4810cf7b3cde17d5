"""A Spark standalone cluster: a master and one worker, out of the PySpark that is installed.

A session gets on it with `master(cluster.url)` and `spark.driver.host` 127.0.0.1. Its executors are children of the
worker and end with it. There is no log-in: everybody with an account on this machine could run a job here.
"""

from __future__ import annotations

import json
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from millstream.engines import ports
from millstream.jvm.java import find_java
from millstream.jvm.maven import pyspark_home
from millstream.jvm.progress import Progress
from millstream.stores.errors import StoreError
from millstream.stores.java import java_command
from millstream.stores.store import Store

# What Spark reaches for inside Java 17, as far as master and worker do; the executors get theirs from the worker.
OPENED = ("java.lang", "java.lang.invoke", "java.io", "java.net", "java.nio", "java.util", "sun.nio.ch", "sun.nio.cs")
OPENS = tuple(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED)


class SparkCluster(Store):
    """A master and a worker."""

    title = "Spark"

    def __init__(
        self, folder: Path | None = None, *, port: int | None = None, cores: int = 2, memory: str = "2g"
    ) -> None:
        """`cores` and `memory` are what the worker has to give to executors."""
        super().__init__(folder, port=port)
        self.cores = cores
        self.memory = memory
        self.web_port, self._worker_port, self._worker_web_port = ports.free_ports(3)
        self._java = ""
        self._home = Path()

    @property
    def url(self) -> str:
        """For `--master`."""
        return f"spark://{self.host}:{self.port}"

    @property
    def web_url(self) -> str:
        return f"http://{self.host}:{self.web_port}"

    def _prepare(self, progress: Progress) -> None:
        self._java = find_java(self.title)
        home = pyspark_home()
        if home is None:
            raise StoreError("Spark is not installed: pip install 'millstream[spark]'")
        self._home = home
        (self.folder / "conf").mkdir(exist_ok=True)

    def _launch(self) -> None:
        address = ("--host", self.host, "--port")
        self._daemon("master", "Master", *address, str(self.port), "--webui-port", str(self.web_port))
        self._wait_for(lambda: self._alive_workers() == 0)  # a worker that finds no master tries again after 5 s only
        self._daemon(
            "worker", "Worker", *address, str(self._worker_port), "--webui-port", str(self._worker_web_port),
            "--cores", str(self.cores), "--memory", self.memory, "--work-dir", str(self.folder / "work"), self.url,
        )  # fmt: skip

    def _answers(self) -> bool:
        return self._alive_workers() == 1

    def _alive_workers(self) -> int | None:
        try:
            with urlopen(f"{self.web_url}/json/", timeout=5) as answer:
                state = json.load(answer)
        except (HTTPException, ValueError):
            return None
        return int(state["aliveworkers"]) if state["status"] == "ALIVE" else None

    def _daemon(self, name: str, main: str, *arguments: str) -> None:
        environment = {
            "SPARK_HOME": str(self._home),
            "SPARK_SCALA_VERSION": "2.13",  # the worker asks for it when it starts an executor
            "SPARK_CONF_DIR": str(self.folder / "conf"),  # not the user's settings
            "SPARK_LOCAL_IP": self.host,  # the web pages too are for this machine alone
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
        }
        command = java_command(
            self._java,
            f"org.apache.spark.deploy.{name}.{main}",
            *arguments,
            class_path=f"{self._home}/jars/*",
            folder=self.folder,
            heap="512m",
            options=(*OPENS, "-Dspark.master.rest.enabled=false"),  # it would take a port for job submission by HTTP
        )
        self._run(command, name=name, environment=environment)
