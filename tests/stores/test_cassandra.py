"""Cassandra as a store: a client writes and reads, data outlive a kill, and the process is gone at the end."""

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import DCAwareRoundRobinPolicy

from millstream.stores import Cassandra
from support.stores import are_gone, new_cassandra, running


def client(store: Cassandra) -> Cluster:
    profile = ExecutionProfile(load_balancing_policy=DCAwareRoundRobinPolicy(local_dc=store.datacenter))
    return Cluster(
        [store.host],
        port=store.port,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        protocol_version=5,
    )


def test_written_read_killed_and_read_again() -> None:
    with running(new_cassandra()) as store:
        with client(store) as cluster, cluster.connect() as session:
            session.execute(
                "CREATE KEYSPACE clicks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
            )
            session.execute("CREATE TABLE clicks.by_campaign (campaign int PRIMARY KEY, country text)")
            session.execute("INSERT INTO clicks.by_campaign (campaign, country) VALUES (1, '日本')")
            assert list(session.execute("SELECT * FROM clicks.by_campaign")) == [(1, "日本")]
            (version,) = session.execute("SELECT release_version FROM system.local").one()
            assert version == "5.0.6"

        pids = store.pids()
        store.kill()
        assert are_gone(pids)
        store.start()
        with client(store) as cluster, cluster.connect("clicks") as session:
            assert list(session.execute("SELECT * FROM by_campaign")) == [(1, "日本")]
        pids, folder = store.pids(), store.folder
    assert are_gone(pids)
    assert not folder.exists()
