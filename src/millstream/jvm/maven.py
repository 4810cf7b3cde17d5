"""Jars from Maven Central: a set of them is declared by name, fetched once with all that it needs, and kept.

The work is done by the Ivy that comes inside PySpark, so nothing but Java and PySpark is needed. Ivy's own settings
(`~/.m2`, a proxy given by the usual Java properties) are respected. The jars land in `CACHE/<name>/`. They are gathered
in a folder beside it, which gets its stamp `.complete` last and is then renamed: a broken-off run never looks complete,
a complete one costs nothing, and two runs at a time do not harm each other. The stamp is a hash of the declaration:
another set of dependencies is another stamp, and is fetched anew.

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
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from millstream.jvm.errors import JvmError
from millstream.jvm.java import find_java
from millstream.jvm.progress import Progress, Step, silent

CACHE_VARIABLE = "MILLSTREAM_CACHE"


@dataclass(frozen=True)
class JarSet:
    """The jars of one program. Coordinates are `org:name:revision`, excludes `org:name` or, for a whole one, `org`."""

    name: str
    """The folder in the cache: `kafka-4.3.1`."""
    title: str
    """What a person calls it: `Apache Kafka 4.3.1`."""
    dependencies: tuple[str, ...]
    """Fetched with all that they need to compile and run."""
    excludes: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    """Revisions that are taken whatever the dependencies ask for."""
    needed: tuple[str, ...] = ()
    """File names without which the set is no good, beside the dependencies' own."""
    extra: str = "spark"
    """The extra of Millstream that brings PySpark along."""

    def needed_jars(self) -> list[str]:
        own = [f"{name}-{revision}.jar" for _, name, revision in map(_coordinate, self.dependencies)]
        return list(dict.fromkeys([*own, *self.needed]))

    def ivy_file(self) -> str:
        lines = ['<ivy-module version="2.0">', f'  <info organisation="millstream" module={quoteattr(self.name)}/>']
        lines += ['  <configurations><conf name="default"/></configurations>', "  <dependencies>"]
        for org, name, revision in map(_coordinate, self.dependencies):
            place = f"org={quoteattr(org)} name={quoteattr(name)} rev={quoteattr(revision)}"
            lines.append(f'    <dependency {place} conf="default->default(compile),runtime"/>')
        for exclude in self.excludes:
            org, _, name = exclude.partition(":")
            lines.append(f"    <exclude org={quoteattr(org)}" + (f" module={quoteattr(name)}" if name else "") + "/>")
        for org, name, revision in map(_coordinate, self.overrides):
            lines.append(f"    <override org={quoteattr(org)} module={quoteattr(name)} rev={quoteattr(revision)}/>")
        return "\n".join([*lines, "  </dependencies>", "</ivy-module>", ""])

    def stamp(self) -> str:
        """What `.complete` must say."""
        return hashlib.sha256("\n".join([self.ivy_file(), *self.needed_jars()]).encode()).hexdigest() + "\n"


def default_cache(environ: Mapping[str, str] = os.environ) -> Path:
    if environ.get(CACHE_VARIABLE):
        return Path(environ[CACHE_VARIABLE])
    if sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    else:
        home = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "millstream"


def jar_folder(jar_set: JarSet, cache: Path | None = None) -> Path:
    """Where the jars are, or will be."""
    return (cache or default_cache()).resolve() / jar_set.name


def is_complete(jar_set: JarSet, cache: Path | None = None) -> bool:
    return _is_complete(jar_set, jar_folder(jar_set, cache))


def fetch(jar_set: JarSet, cache: Path | None = None, progress: Progress = silent) -> Path:
    """The folder of the jars; they are fetched if they are not there. JvmError if they are not to be had."""
    folder = jar_folder(jar_set, cache)
    if _is_complete(jar_set, folder):
        return folder
    java, ivy = find_java(jar_set.title), _pyspark_jars(jar_set)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f"{folder.name}.part-", dir=folder.parent))
    except OSError as error:
        raise JvmError(
            f"the cache {folder.parent} cannot be written ({error.strerror}); {CACHE_VARIABLE} names another"
        ) from None
    try:
        _retrieve(jar_set, java, ivy, part, progress)
        _put_in_place(jar_set, part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def pyspark_home() -> Path | None:
    """The folder of PySpark, found without importing it; None where it is not installed."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def _pyspark_jars(jar_set: JarSet) -> Path:
    home = pyspark_home()
    if home is None:
        raise JvmError(
            f"the jars of {jar_set.title} are fetched with the Ivy inside PySpark, which is not installed: "
            f"pip install 'millstream[{jar_set.extra}]'"
        )
    return home / "jars"


def _retrieve(jar_set: JarSet, java: str, ivy: Path, part: Path, progress: Progress) -> None:
    ivy_file = part / "ivy.xml"
    ivy_file.write_text(jar_set.ivy_file())
    command = [
        java, "-cp", f"{ivy}/*", "org.apache.ivy.Main",
        "-ivy", str(ivy_file),
        "-cache", str(part.parent / "ivy" / jar_set.name),  # Ivy's own folder is for one at a time
        "-retrieve", f"{part}/[artifact]-[revision](-[classifier]).[ext]",
    ]  # fmt: skip
    text = f"fetching {jar_set.title} from Maven Central"
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
        raise JvmError(
            f"the jars of {jar_set.title} are not to be had from Maven Central: {reason_in(output)} "
            "(is there a network connection? a proxy is given by JAVA_TOOL_OPTIONS=-Dhttps.proxyHost=...)"
        )
    for jar in part.glob("*.jar"):
        if jar.name.endswith(("-sources.jar", "-javadoc.jar")):
            jar.unlink()
    missing = [name for name in jar_set.needed_jars() if not (part / name).is_file()]
    if missing:
        raise JvmError(f"Ivy finished, but {', '.join(missing)} did not come with it")
    progress(Step(text, found, found))
    (part / ".complete").write_text(jar_set.stamp())
    part.chmod(0o755)  # temporary folders are for their owner alone, a cache need not be


def _put_in_place(jar_set: JarSet, part: Path, folder: Path) -> None:
    if not _is_complete(jar_set, folder):
        shutil.rmtree(folder, ignore_errors=True)
    try:
        part.rename(folder)
    except OSError as error:  # somebody else was faster, or the folder cannot be replaced
        if not _is_complete(jar_set, folder):
            raise JvmError(f"the jars cannot be put into {folder}: {error.strerror}") from error


def _is_complete(jar_set: JarSet, folder: Path) -> bool:
    try:
        return (folder / ".complete").read_text() == jar_set.stamp()
    except OSError:
        return False


def _coordinate(text: str) -> tuple[str, str, str]:
    org, name, revision = text.split(":")
    return org, name, revision


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
