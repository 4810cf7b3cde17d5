"""What the tests of pipelines share: one Spark session, and stores that start with the first test that asks."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from millstream.stores import Cassandra, Hdfs, MariaDB, PostgreSQL, Redis, SparkCluster
from support.spark import running_spark
from support.stores import new_cassandra, new_hdfs, running


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session, started with the first test that needs it."""
    with running_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDB]:
    with running(MariaDB()) as store:
        yield store


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    with running(PostgreSQL()) as store:
        yield store


@pytest.fixture(scope="session")
def redis() -> Iterator[Redis]:
    with running(Redis()) as store:
        yield store


@pytest.fixture(scope="session")
def cassandra() -> Iterator[Cassandra]:
    with running(new_cassandra()) as store:
        yield store


@pytest.fixture(scope="session")
def hdfs() -> Iterator[Hdfs]:
    with running(new_hdfs()) as store:
        yield store


@pytest.fixture(scope="session")
def spark_cluster() -> Iterator[SparkCluster]:
    with running(SparkCluster()) as cluster:
        yield cluster
