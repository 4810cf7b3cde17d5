#!/usr/bin/env python3
"""Fetches Apache Kafka's jars (broker, tools and Java clients) into the cache, once.

Used by `make setup`; the tests start Apache Kafka and its tools from these jars. The work is done by the Ivy that comes
inside PySpark, from Maven Central, so nothing but Java and PySpark is needed. Ivy's own settings (`~/.m2`, a proxy
given by the usual Java properties) are respected.

    fetch_kafka.py [--cache DIR]

The jars land in `DIR/kafka-<version>/`; the last file written is the stamp `.complete`, so a broken-off run is repeated
and a complete one costs nothing. Exit status 0: the jars are there; 1: they are not, and the reason was printed.
"""

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KAFKA_VERSION = "4.3.1"
SLF4J_VERSION = "1.7.36"

CONF = "default->default(compile),runtime"

# slf4j-simple is the one logging binding: Kafka's own choice would need a configuration file.
IVY_FILE = f"""<ivy-module version="2.0">
  <info organisation="millstream" module="kafka-for-tests"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{KAFKA_VERSION}" conf="{CONF}"/>
    <dependency org="org.apache.kafka" name="kafka-tools" rev="{KAFKA_VERSION}" conf="{CONF}"/>
    <dependency org="org.slf4j" name="slf4j-simple" rev="{SLF4J_VERSION}" conf="{CONF}"/>
    <exclude org="org.apache.logging.log4j" module="log4j-slf4j-impl"/>
  </dependencies>
</ivy-module>
"""


class FetchError(Exception):
    """The jars are not to be had; the message says why and what to do."""


def default_cache() -> Path:
    """The cache folder: `MILLSTREAM_CACHE`, or `.cache` at the root of the repository."""
    return Path(os.environ.get("MILLSTREAM_CACHE") or Path(__file__).resolve().parent.parent / ".cache")


def jar_folder(cache: Path) -> Path:
    return cache / f"kafka-{KAFKA_VERSION}"


def stamp_text() -> str:
    """What the stamp must say: another set of dependencies is another stamp."""
    return hashlib.sha256(IVY_FILE.encode()).hexdigest() + "\n"


def is_complete(cache: Path) -> bool:
    stamp = jar_folder(cache) / ".complete"
    return stamp.is_file() and stamp.read_text() == stamp_text()


def pyspark_jars() -> Path:
    """The jar folder of PySpark, found without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise FetchError("PySpark is not installed in this Python (its Ivy does the work); run `make setup`")
    return Path(next(iter(spec.submodule_search_locations))) / "jars"


def fetch(cache: Path) -> int:
    """Resolves and retrieves the jars; returns how many there are."""
    java = shutil.which("java")
    if java is None:
        raise FetchError("no `java` on the PATH; install Java 17 (Debian: apt-get install openjdk-17-jdk-headless)")
    folder = jar_folder(cache)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="millstream-ivy-") as temp:
        ivy_file = Path(temp) / "ivy.xml"
        ivy_file.write_text(IVY_FILE)
        command = [
            java, "-cp", f"{pyspark_jars()}/*", "org.apache.ivy.Main",
            "-ivy", str(ivy_file),
            "-cache", str(cache / "ivy"),
            "-retrieve", f"{folder}/[artifact]-[revision](-[classifier]).[ext]",
        ]  # fmt: skip
        run_with_progress(command)
    jars = sorted(folder.glob("*.jar"))
    names = {jar.name for jar in jars}
    for artifact in ("kafka_2.13", "kafka-tools", "kafka-clients"):
        needed = f"{artifact}-{KAFKA_VERSION}.jar"
        if needed not in names:
            raise FetchError(f"Ivy finished, but {needed} is not among the {len(jars)} jars it brought")
    for jar in jars:
        if jar.name.endswith(("-sources.jar", "-javadoc.jar")):
            jar.unlink()
    (folder / ".complete").write_text(stamp_text())
    return len(list(folder.glob("*.jar")))


def run_with_progress(command: list[str]) -> None:
    """Runs Ivy, showing each jar as it arrives; its whole output is shown only if it fails."""
    output: list[str] = []
    arrived = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            output.append(line)
            if "[SUCCESSFUL ]" in line:
                arrived += 1
                print(f"  {arrived:3d}  {line.split('SUCCESSFUL ]')[1].strip()}", flush=True)
    if process.returncode != 0:
        raise FetchError("Ivy could not bring Kafka's jars:\n" + "".join(output[-40:]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, default=default_cache(), help="where the jars go (default: %(default)s)")
    cache: Path = parser.parse_args().cache
    if is_complete(cache):
        return 0
    print(f"Fetching Apache Kafka {KAFKA_VERSION} and its dependencies into {jar_folder(cache)}", flush=True)
    started = time.monotonic()
    try:
        count = fetch(cache.resolve())
    except FetchError as failure:
        print(f"fetch_kafka: {failure}", file=sys.stderr)
        return 1
    print(f"  {count} jars in {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
