"""Options and fixtures shared by the suites that run against a server of any kind.

`--bootstrap-servers` says which: the word `millstream` (the default: a server process of our own, one for the session),
the word `apache-kafka` (Apache Kafka started from its jars), or the address of a cluster that runs already with the
settings of `support/settings.py`.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from millstream.engines.kafka import KafkaEngine
from support.apache_kafka import ApacheKafka
from support.cluster import Cluster, wait_for_coordinators
from support.java import KafkaWorker
from support.millstream_server import MillstreamServer
from support.raw import RawClient
from support.three_brokers import three_brokers as running_three_brokers

pytest_plugins = ["pytester"]
LONG = ("pipelines/system/", "examples/", "benchmark/", "pipelines/steps/", "pipelines/sinks/", "pipelines/", "stores/")
"""Parts of the paths of tests that start Spark, stores or Apache Kafka."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--bootstrap-servers",
        default="millstream",
        help="where the behaviour and client suites run: millstream (default), apache-kafka, or HOST:PORT",
    )


def pytest_configure(config: pytest.Config) -> None:
    # Spark's JVMs live for seconds in a test: compiling their code twice costs more than it saves.
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    # kafka-python loads its schemas through deprecated functions of importlib.
    for function in ("read_text", "open_text"):
        config.addinivalue_line("filterwarnings", f"ignore:{function} is deprecated:DeprecationWarning")
    # It also leaves the socket of a connection that was refused to the garbage collector, in whichever test that runs.
    refused = r"ignore:Exception ignored in. <socket.*laddr=..0\.0\.0\.0:pytest.PytestUnraisableExceptionWarning"
    config.addinivalue_line("filterwarnings", refused)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take minutes come first: whoever got one of them last would keep everybody waiting."""
    items.sort(key=lambda item: next((n for n, part in enumerate(LONG) if part in item.nodeid), len(LONG)))


def pytest_report_header(config: pytest.Config) -> str:
    return f"bootstrap servers: {config.getoption('--bootstrap-servers')}"


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The server under test."""
    where: str = request.config.getoption("--bootstrap-servers")
    with ExitStack() as stack:
        if where == "millstream":
            server = stack.enter_context(MillstreamServer())
            found = Cluster(server.bootstrap_servers, where, server.data_folder, server.pid)
        elif where == "apache-kafka":
            kafka = stack.enter_context(ApacheKafka())
            found = Cluster(kafka.bootstrap_servers, where, kafka.data_folder, kafka.pid)
        else:
            found = Cluster(where, "remote")
        with found.connect() as client:
            wait_for_coordinators(client)
        yield found


@pytest.fixture
def raw(cluster: Cluster) -> Iterator[RawClient]:
    """A fresh raw connection."""
    with cluster.connect() as client:
        yield client


@pytest.fixture(scope="session")
def java() -> Iterator[KafkaWorker]:
    """The JVM for Kafka's tools and the Java clients, started with the first test that needs it."""
    with KafkaWorker() as worker:
        yield worker


@pytest.fixture(scope="session")
def three_brokers() -> Iterator[KafkaEngine]:
    """Apache Kafka with three brokers; a test that stops one starts it again."""
    with running_three_brokers() as engine:
        yield engine
