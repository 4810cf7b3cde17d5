"""The Spark session that pipelines share, on this machine or on a cluster.

A real-time query holds one task slot for each partition of its topics for as long as it runs, so a local session gets
as many slots as there are cores and these besides. Spark's own chatter goes to a file; the console is the user's.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from millstream.pipelines.description.pipeline import Pipeline
from millstream.pipelines.description.sinks import TableSink
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.jars import fetch as fetch_jars
from millstream.pipelines.spark.values import JAVA_OPTIONS

LOCAL_SLOTS = max(2, os.cpu_count() or 2)
LOG_FILE = "spark.log"
DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": str(LOCAL_SLOTS),
    # A micro-batch of a stream is small and always of the same shape: planning it again at run time costs, and gains
    # nothing.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    # Rows go between Spark and Python over a port that takes one caller: on a busy machine a stranger that is looking
    # for a server that was there before may be the first. A socket of the file system has no strangers.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.authenticate.socketTimeout": "120s",  # 15 are too few for a machine that has much to do
    # All but kafka: only the newer interface tells what was observed while a batch was written to a topic.
    "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
}
"""What a pipeline wants of Spark, unless its file or the command line says otherwise."""


def start_session(
    pipelines: Sequence[Pipeline],
    jars: Sequence[Path],
    home: Path,
    *,
    master: str | None = None,
    real_time_slots: int = 0,
    memory: str = "1g",
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """A new session, or the one there is. PipelineError if Spark does not start."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    home.mkdir(parents=True, exist_ok=True)
    settings = {
        **DEFAULTS,
        "spark.master": master or f"local[{LOCAL_SLOTS + real_time_slots}]",
        "spark.app.name": "millstream " + ", ".join(pipeline.name for pipeline in pipelines),
        **({"spark.jars": ",".join(map(str, jars))} if jars else {}),
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": driver_options(home),
        "spark.executor.extraJavaOptions": JAVA_OPTIONS,
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        **_local_address(master),
    }
    for pipeline in pipelines:
        settings |= pipeline.spark
    settings |= conf or {}
    builder = SparkSession.builder.config(map=dict(settings))
    if any(isinstance(sink, TableSink) for pipeline in pipelines for sink in pipeline.sinks):
        metastore = f"jdbc:derby:;databaseName={home / 'metastore'};create=true"
        builder = builder.config("spark.hadoop.javax.jdo.option.ConnectionURL", metastore).enableHiveSupport()
    try:
        with _errors_to(home / LOG_FILE):
            session = builder.getOrCreate()
    except Exception as error:
        raise PipelineError(f"Spark does not start ({_first_line(error)}); see {home / LOG_FILE}") from error
    return session


@contextlib.contextmanager
def running_session(
    pipelines: Sequence[Pipeline],
    home: Path,
    session: SparkSession | None = None,
    *,
    master: str | None = None,
    real_time_slots: int = 0,
    memory: str = "1g",
    conf: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """`session`, which stays; or one of its own with the connectors, which is stopped at the end."""
    if session is not None:
        yield session
        return
    spark = start_session(
        pipelines, fetch_jars(), home, master=master, real_time_slots=real_time_slots, memory=memory, conf=conf
    )
    try:
        yield spark
    finally:
        spark.stop()


def _local_address(master: str | None) -> dict[str, str]:
    """A session on this machine alone talks to itself over loopback, whatever the host's name resolves to."""
    if master is None or master.startswith("local") or "://127.0.0.1" in master:
        return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return {}


def driver_options(home: Path) -> str:
    """What the driver's JVM must be started with; `spark-submit` starts it before there is a session."""
    home.mkdir(parents=True, exist_ok=True)
    return f"-Dlog4j2.configurationFile={_logging(home)} -Dderby.system.home={home} {JAVA_OPTIONS}"


def _logging(home: Path) -> Path:
    """Spark's logging: warnings, to a file of bounded size."""
    file = home / "log4j2.properties"
    file.write_text(
        f"""rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {home / LOG_FILE}
appender.file.filePattern = {home / LOG_FILE}.1
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 16MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 1
"""
    )
    return file


@contextlib.contextmanager
def _errors_to(file: Path) -> Iterator[None]:
    """Standard error goes to the file for a while: the JVM inherits it, and what it prints before its logging works."""
    sys.stderr.flush()
    with file.open("ab") as target:
        saved = os.dup(2)
        try:
            os.dup2(target.fileno(), 2)
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
