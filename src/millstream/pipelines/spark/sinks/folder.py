"""A folder on any file system that Spark reaches (this machine's, HDFS, S3), with what batches of files need of it.

Names are relative to the folder, with `/` between their parts. Each call either happened or did not, also when the
process is killed in it, but for `move` on an object store: that copies and then deletes, and may leave the file in both
places. Doing a call again that was broken off is always right.
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.hadoop_files import HadoopFiles

_PARTLY = ".tmp"
_UNKNOWN = "org.apache.hadoop.fs.UnsupportedFileSystemException"


class Folder:
    """The folder; made by the first thing that is put into it."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        """PipelineError if there is no such kind of file system. Trouble with one may pass, and stays as it is."""
        jvm: Any = spark._jvm
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        self._hadoop = HadoopFiles(spark)
        root = self._path(location)
        try:
            self._files: Any = root.getFileSystem(spark._jsc.hadoopConfiguration())
        except Py4JJavaError as error:
            if error.java_exception.getClass().getName() != _UNKNOWN:
                raise
            raise PipelineError(f"{location}: {error.java_exception.getMessage()}") from error
        self.location = str(self._files.makeQualified(root).toString()).rstrip("/")
        """With scheme and host, so that two ways to write a folder can be compared."""

    def path(self, name: str) -> str:
        """The whole path."""
        return f"{self.location}/{name}" if name else self.location

    def exists(self, name: str = "") -> bool:
        return bool(self._files.exists(self._of(name)))

    def names(self, name: str) -> list[str]:
        """What is directly in a folder; nothing if there is no such folder."""
        return self._hadoop.names(self.path(name))

    def files(self, name: str) -> list[str]:
        """All files in a folder and in those below it, as names relative to it, in order."""
        start = len(self.path(name)) + 1
        found = []
        listing = self._files.listFiles(self._of(name), True)
        while listing.hasNext():
            found.append(str(listing.next().getPath().toString())[start:])
        return sorted(found)

    def read(self, name: str) -> str:
        return self._hadoop.read_text(self.path(name))

    def write(self, name: str, text: str) -> None:
        """A file that is not there yet appears with all of its text."""
        stream = self._files.create(self._of(name + _PARTLY), True)
        try:
            stream.write(text.encode())
        finally:
            stream.close()
        self.move(name + _PARTLY, name)

    def move(self, source: str, target: str) -> None:
        """FileNotFoundError if the file is in neither place."""
        old, new = self._of(source), self._of(target)
        if self._files.exists(new):  # it was moved already; object stores may have the old one still
            self._files.delete(old, False)
            return
        if not self._files.exists(old):
            raise FileNotFoundError(self.path(target))
        self._files.mkdirs(new.getParent())
        if not self._files.rename(old, new):
            raise OSError(f"the file system did not move {self.path(source)} to {self.path(target)}")

    def remove(self, name: str) -> None:
        """A file, or a folder with all that is in it; nothing happens if it is not there."""
        self._files.delete(self._of(name), True)

    def _of(self, name: str) -> Any:
        return self._path(self.path(name))
