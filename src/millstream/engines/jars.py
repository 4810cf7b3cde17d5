"""Apache Kafka's jars and its Java, as the kafka engine wants them; what goes wrong is an EngineError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from millstream.engines.errors import EngineError
from millstream.jvm import java, maven
from millstream.jvm.errors import JvmError
from millstream.jvm.maven import JarSet
from millstream.jvm.progress import Progress, silent

KAFKA_VERSION = "4.3.1"
SLF4J_VERSION = "1.7.36"

KAFKA = JarSet(
    name=f"kafka-{KAFKA_VERSION}",
    title=f"Apache Kafka {KAFKA_VERSION}",
    dependencies=(
        f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
        f"org.apache.kafka:kafka-tools:{KAFKA_VERSION}",
        # the one logging binding: Kafka's own choice would need a configuration file
        f"org.slf4j:slf4j-simple:{SLF4J_VERSION}",
    ),
    excludes=("org.apache.logging.log4j:log4j-slf4j-impl",),
    needed=(f"kafka-clients-{KAFKA_VERSION}.jar",),
    extra="kafka",
)


def fetch(cache: Path | None = None, progress: Progress = silent) -> Path:
    """The folder of the jars; they are fetched if they are not there."""
    with _engine_errors():
        return maven.fetch(KAFKA, cache, progress)


def find_java() -> str:
    with _engine_errors():
        return java.find_java("Apache Kafka")


@contextmanager
def _engine_errors() -> Iterator[None]:
    try:
        yield
    except JvmError as error:
        raise EngineError(str(error)) from error
