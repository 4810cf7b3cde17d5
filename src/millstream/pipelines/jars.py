"""The jars that Spark needs beside its own: connectors to Kafka and to databases, and Avro.

What is in PySpark's own jar folder already (Hadoop, Scala, SLF4J, the codecs) is left out, for two versions of one
class in a session are worse than none. `kafka-clients` is Spark's own choice, not the version of the kafka engine.
"""

from __future__ import annotations

from pathlib import Path

from millstream.jvm import maven
from millstream.jvm.maven import JarSet
from millstream.jvm.progress import Progress, silent

SPARK_VERSION = "4.2.0"
SCALA_VERSION = "2.13"

SPARK = JarSet(
    name=f"spark-{SPARK_VERSION}",
    title="Spark's connectors",
    dependencies=(
        f"org.apache.spark:spark-sql-kafka-0-10_{SCALA_VERSION}:{SPARK_VERSION}",
        # Not every mirror of Maven Central has 4.2.0 of this one; 4.1.1 works with it, and a test holds it to that.
        f"org.apache.spark:spark-avro_{SCALA_VERSION}:4.1.1",
        "org.mariadb.jdbc:mariadb-java-client:3.5.1",
        "org.postgresql:postgresql:42.7.7",
        "org.xerial:sqlite-jdbc:3.49.1.0",
    ),
    excludes=(
        # in PySpark's jar folder
        "at.yawk.lz4",
        "com.google.code.findbugs",
        "org.apache.hadoop",
        f"org.apache.spark:spark-tags_{SCALA_VERSION}",
        "org.lz4",
        "org.scala-lang",
        "org.scala-lang.modules",
        "org.slf4j",
        "org.tukaani",
        "org.xerial.snappy",
        # only for sign-on with Windows accounts, and annotations that nobody reads at run time
        "com.github.waffle",
        "org.checkerframework",
    ),
    # The connector asks for this module in its own version, which not every mirror has; 4.0.0 does as well.
    overrides=(f"org.apache.spark:spark-token-provider-kafka-0-10_{SCALA_VERSION}:4.0.0",),
    needed=(
        f"spark-token-provider-kafka-0-10_{SCALA_VERSION}-4.0.0.jar",
        "kafka-clients-3.9.2.jar",
        "commons-pool2-2.13.1.jar",
    ),
)


def fetch(cache: Path | None = None, progress: Progress = silent) -> list[Path]:
    """The jars for `spark.jars`, fetched if they are not there; JvmError if they are not to be had."""
    return sorted(maven.fetch(SPARK, cache, progress).glob("*.jar"))
