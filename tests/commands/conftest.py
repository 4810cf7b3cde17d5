"""The commands of this folder run on the cluster of `--bootstrap-servers`: Millstream, and Apache Kafka as well."""

import pytest

from support.cluster import Cluster
from support.topics import Commands


@pytest.fixture(scope="session")
def millstream_command(cluster: Cluster) -> Commands:
    return Commands(cluster.bootstrap_servers)
