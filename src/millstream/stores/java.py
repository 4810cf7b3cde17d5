"""What the Java stores have in common: their jars, and JVMs that are quick to start rather than fast in the end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from millstream.jvm import maven
from millstream.jvm.java import find_java
from millstream.jvm.maven import JarSet
from millstream.jvm.progress import Progress
from millstream.stores.store import Store

OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
)


class JavaStore(Store):
    """A store that runs in JVMs, from jars of Maven Central."""

    jars: ClassVar[JarSet]
    start_seconds = 90

    def __init__(self, folder: Path | None = None, *, port: int | None = None, cache: Path | None = None) -> None:
        """`cache`: where the jars are kept, by default `MILLSTREAM_CACHE` or the user's cache home."""
        super().__init__(folder, port=port)
        self._cache = cache
        self._java = ""
        self._class_path = ""

    def _prepare(self, progress: Progress) -> None:
        self._java = find_java(self.title)
        self._class_path = f"{maven.fetch(self.jars, self._cache, progress)}/*"

    def _java_command(self, main: str, *arguments: str, heap: str, options: Sequence[str] = ()) -> list[str]:
        class_path = self._class_path
        return java_command(
            self._java, main, *arguments, class_path=class_path, folder=self.folder, heap=heap, options=options
        )


def java_command(
    java: str, main: str, *arguments: str, class_path: str, folder: Path, heap: str, options: Sequence[str] = ()
) -> list[str]:
    """The command for a class; what it leaves in a temporary folder is left in the store's."""
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    own = (f"-Xmx{heap}", f"-Djava.io.tmpdir={temporary}")
    return [java, *own, *OPTIONS, *options, "-cp", class_path, main, *arguments]
