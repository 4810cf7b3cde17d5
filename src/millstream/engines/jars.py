"""Apache Kafka's jars: fetched once from Maven Central, by name, and kept in the cache.

The work is done by the Ivy that comes inside PySpark, so nothing but Java and PySpark is needed. Ivy's own settings
(`~/.m2`, a proxy given by the usual Java properties) are respected. The jars land in `CACHE/kafka-<version>/`. They are
gathered in a folder beside it, which gets its stamp `.complete` last and is then renamed: a broken-off run never looks
complete, a complete one costs nothing, and two runs at a time do not harm each other.

The cache is `MILLSTREAM_CACHE`, or `millstream` under the user's cache home.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from millstream.engines.engine import Progress, Step, silent
from millstream.engines.errors import EngineError
from millstream.engines.java import find_java

KAFKA_VERSION = "4.3.1"
SLF4J_VERSION = "1.7.36"
CACHE_VARIABLE = "MILLSTREAM_CACHE"
NEEDED = tuple(f"{artifact}-{KAFKA_VERSION}.jar" for artifact in ("kafka_2.13", "kafka-tools", "kafka-clients"))

_CONF = "default->default(compile),runtime"

# slf4j-simple is the one logging binding: Kafka's own choice would need a configuration file.
IVY_FILE = f"""<ivy-module version="2.0">
  <info organisation="millstream" module="kafka-engine"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{KAFKA_VERSION}" conf="{_CONF}"/>
    <dependency org="org.apache.kafka" name="kafka-tools" rev="{KAFKA_VERSION}" conf="{_CONF}"/>
    <dependency org="org.slf4j" name="slf4j-simple" rev="{SLF4J_VERSION}" conf="{_CONF}"/>
    <exclude org="org.apache.logging.log4j" module="log4j-slf4j-impl"/>
  </dependencies>
</ivy-module>
"""
STAMP = hashlib.sha256(IVY_FILE.encode()).hexdigest() + "\n"
"""What `.complete` must say: another set of dependencies is another stamp."""


def default_cache(environ: Mapping[str, str] = os.environ) -> Path:
    if environ.get(CACHE_VARIABLE):
        return Path(environ[CACHE_VARIABLE])
    if sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    else:
        home = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "millstream"


def jar_folder(cache: Path) -> Path:
    return cache / f"kafka-{KAFKA_VERSION}"


def is_complete(cache: Path) -> bool:
    return _is_complete(jar_folder(cache))


def fetch(cache: Path | None = None, progress: Progress = silent) -> Path:
    """The folder of the jars; they are fetched if they are not there. EngineError if they are not to be had."""
    cache = (cache or default_cache()).resolve()
    folder = jar_folder(cache)
    if _is_complete(folder):
        return folder
    java, ivy = find_java(), pyspark_jars()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f"{folder.name}.part-", dir=cache))
    except OSError as error:
        raise EngineError(
            f"the cache {cache} cannot be written ({error.strerror}); {CACHE_VARIABLE} names another"
        ) from None
    try:
        _retrieve(java, ivy, cache, part, progress)
        _put_in_place(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def pyspark_jars() -> Path:
    """The jar folder of PySpark, found without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise EngineError(
            "Apache Kafka's jars are fetched with the Ivy inside PySpark, which is not installed: "
            "pip install 'millstream[kafka]'"
        )
    return Path(next(iter(spec.submodule_search_locations))) / "jars"


def _retrieve(java: str, ivy: Path, cache: Path, part: Path, progress: Progress) -> None:
    ivy_file = part / "ivy.xml"
    ivy_file.write_text(IVY_FILE)
    command = [
        java, "-cp", f"{ivy}/*", "org.apache.ivy.Main",
        "-ivy", str(ivy_file),
        "-cache", str(cache / "ivy"),
        "-retrieve", f"{part}/[artifact]-[revision](-[classifier]).[ext]",
    ]  # fmt: skip
    text = f"fetching Apache Kafka {KAFKA_VERSION} from Maven Central"
    progress(Step(text))
    output: list[str] = []
    found = arrived = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=part) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                output.append(line)
                found += line.lstrip().startswith("found ")
                if "[SUCCESSFUL ]" in line:
                    arrived += 1
                    progress(Step(text, arrived, found))
        except BaseException:
            process.kill()  # or leaving the block would wait for it
            raise
    ivy_file.unlink()
    if process.returncode != 0:
        raise EngineError(
            f"Apache Kafka's jars are not to be had from Maven Central: {reason_in(output)} "
            "(is there a network connection? a proxy is given by JAVA_TOOL_OPTIONS=-Dhttps.proxyHost=...)"
        )
    for jar in part.glob("*.jar"):
        if jar.name.endswith(("-sources.jar", "-javadoc.jar")):
            jar.unlink()
    missing = [name for name in NEEDED if not (part / name).is_file()]
    if missing:
        raise EngineError(f"Ivy finished, but {', '.join(missing)} did not come with it")
    progress(Step(text, found, found))
    (part / ".complete").write_text(STAMP)
    part.chmod(0o755)  # temporary folders are for their owner alone, a cache need not be


def _put_in_place(part: Path, folder: Path) -> None:
    if not _is_complete(folder):
        shutil.rmtree(folder, ignore_errors=True)
    try:
        part.rename(folder)
    except OSError as error:  # somebody else was faster, or the folder cannot be replaced
        if not _is_complete(folder):
            raise EngineError(f"the jars cannot be put into {folder}: {error.strerror}") from error


def _is_complete(folder: Path) -> bool:
    stamp = folder / ".complete"
    try:
        return stamp.read_text() == STAMP
    except OSError:
        return False


def reason_in(output: list[str]) -> str:
    """Ivy's own reason, in one line, out of all that it prints."""
    lines = [line.strip() for line in output]
    for pattern in (
        r"Server access error at url (.*)",
        r"(.*(?:UnknownHost|Connect|SSL)\w*Exception.*)",
        r"(.*not found.*)",
    ):
        for line in lines:
            match = re.search(pattern, line)
            if match:
                return match[1].strip(": ")
    return next((line for line in reversed(lines) if line), "Ivy said nothing")
