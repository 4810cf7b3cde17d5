"""HDFS as a store: a file written by HTTP is read by Spark's own Hadoop client, outlives a stop, and all ends."""

import http.client
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from millstream.jvm.maven import pyspark_home
from millstream.stores import Hdfs
from millstream.stores.hdfs import HADOOP_VERSION
from support.stores import are_gone, new_hdfs, running


@pytest.fixture(scope="module")
def store() -> Iterator[Hdfs]:
    with running(new_hdfs()) as started:
        yield started


def put(store: Hdfs, path: str, body: bytes) -> None:
    """WebHDFS: the name node says where to, the data node takes it."""
    status, location = send(f"{store.web_url}{path}?op=CREATE&overwrite=true")
    assert status == 307
    assert send(location, body)[0] == 201


def send(url: str, body: bytes = b"") -> tuple[int, str]:
    target = urlsplit(url)
    with closing(http.client.HTTPConnection(target.netloc, timeout=30)) as connection:
        connection.request("PUT", f"{target.path}?{target.query}", body=body)
        answer = connection.getresponse()
        return answer.status, answer.headers.get("Location", "")


def read(store: Hdfs, path: str) -> bytes:
    with urlopen(f"{store.web_url}{path}?op=OPEN", timeout=30) as answer:
        content: bytes = answer.read()
    return content


def test_written_stopped_and_read(store: Hdfs) -> None:
    put(store, "/archive/clicks.txt", b"one\ntwo\n")
    assert read(store, "/archive/clicks.txt") == b"one\ntwo\n"
    pids, port = store.pids(), store.port
    store.stop()
    assert are_gone(pids)
    store.start()
    assert store.url == f"hdfs://127.0.0.1:{port}"
    assert read(store, "/archive/clicks.txt") == b"one\ntwo\n"


def test_the_version_is_that_of_sparks_own_client() -> None:
    home = pyspark_home()
    assert home is not None
    assert (home / "jars" / f"hadoop-client-api-{HADOOP_VERSION}.jar").exists()
