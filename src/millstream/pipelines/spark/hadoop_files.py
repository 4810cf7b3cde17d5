"""Checkpoints on any file system that Spark reaches, through Hadoop's own interface in the JVM."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from millstream.pipelines.checkpoints import LOCAL_FILES, FileSystem


class HadoopFiles:
    """`FileSystem` for `hdfs://`, `s3a://` and the like."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._configuration: Any = spark._jsc.hadoopConfiguration()

    def names(self, folder: str) -> list[str]:
        path, files = self._open(folder)
        if not files.exists(path):
            return []
        return sorted(str(status.getPath().getName()) for status in files.listStatus(path))

    def read_text(self, file: str) -> str:
        path, files = self._open(file)
        if not files.exists(path):
            raise FileNotFoundError(file)
        stream = files.open(path)
        try:
            return bytes(self._jvm.org.apache.hadoop.shaded.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()
        finally:
            stream.close()

    def remove(self, folder: str) -> None:
        path, files = self._open(folder)
        files.delete(path, True)

    def _open(self, text: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(text)
        return path, path.getFileSystem(self._configuration)


def files_of(location: str, spark: SparkSession) -> FileSystem:
    """The file system of a checkpoint: this machine's, or the one that its URL names."""
    scheme, separator, _ = location.partition("://")
    return HadoopFiles(spark) if separator and scheme != "file" else LOCAL_FILES
