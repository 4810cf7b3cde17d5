"""Where pipelines are in their topics, as the cluster sees it."""

from collections.abc import Iterator

import pytest

from millstream.cluster.connection import Connection
from millstream.cluster.errors import BadInput, ClusterError, NotFound, Unreachable
from millstream.cluster.groups import describe_group
from millstream.cluster.positions import Position, parse_position
from millstream.cluster.topics import delete_topics, plan_truncate, truncate
from millstream.pipelines import offsets
from millstream.pipelines.offsets import Gap, GroupPositions
from support.cluster import Cluster, unique
from support.millstream_server import MillstreamServer
from support.pipelines import fill, new_topic
from support.topics import Commands


@pytest.fixture
def connection(cluster: Cluster) -> Connection:
    return Connection(cluster.bootstrap_servers)


@pytest.fixture
def group(connection: Connection) -> Iterator[GroupPositions]:
    with GroupPositions(connection, unique("millstream-clicks")) as positions:
        yield positions


def test_what_is_committed_is_seen_by_every_tool(connection: Connection, group: GroupPositions) -> None:
    topic, other = new_topic(connection, 3), new_topic(connection)
    fill(connection, topic, 10)
    group.commit({topic: {0: 4, 1: 0}, other: {0: 0}})
    group.commit({topic: {0: 6}})
    group.commit({})
    assert group.committed([topic]) == {topic: {0: 6, 1: 0}}
    assert group.committed([topic, other, "no-such-topic"]) == {topic: {0: 6, 1: 0}, other: {0: 0}}
    described = describe_group(connection, group.group)
    assert {(lag.topic, lag.partition, lag.lag) for lag in described.partitions} == {
        (topic, 0, 4), (topic, 1, 0), (other, 0, 0)
    }  # fmt: skip


def test_a_group_that_has_members_is_not_ours(connection: Connection, group: GroupPositions) -> None:
    topic = new_topic(connection)
    with Commands(connection.bootstrap).member(group.group, topic), pytest.raises(ClusterError, match=group.group):
        group.commit({topic: {0: 0}})


def test_committing_once(connection: Connection) -> None:
    topic, group = new_topic(connection), unique("group")
    offsets.commit_group(connection, group, {topic: {0: 3}})
    with GroupPositions(connection, group) as positions:
        assert positions.committed([topic]) == {topic: {0: 3}}


def test_a_cluster_that_went_away_is_said_within_seconds() -> None:
    with MillstreamServer() as server:
        connection = Connection(server.bootstrap_servers)
        topic = new_topic(connection)
        positions = GroupPositions(connection, "clicks")
        positions.commit({topic: {0: 0}})
    with pytest.raises(Unreachable):
        positions.commit({topic: {0: 0}})
    positions.close()


def test_bounds_and_lag(connection: Connection) -> None:
    topic, other = new_topic(connection, 2), new_topic(connection)
    fill(connection, topic, 10)
    fill(connection, other, 3)
    truncate(connection, topic, plan_truncate(connection, topic, parse_position("4", "--before"), [0]))
    ends = offsets.beginning_and_end(connection, [topic, other])
    assert ends == {topic: {0: (4, 10), 1: (0, 0)}, other: {0: (0, 3)}}
    assert offsets.lag({topic: {0: 9}}, ends) == 1 + 3
    assert offsets.lag({}, ends) == 6 + 3
    with pytest.raises(NotFound, match="there is no topic"):
        offsets.beginning_and_end(connection, ["no-such-topic"])


def test_topics_by_pattern(connection: Connection) -> None:
    prefix = unique("orders")
    names = [f"{prefix}.{place}" for place in ("berlin", "bern", "oslo")]
    commands = Commands(connection.bootstrap)
    for name in names:
        commands("topic", "create", name, "--partitions", "2")
    assert offsets.topic_names(connection, ["a", "b"], None) == ["a", "b"]
    assert offsets.topic_names(connection, [], f"{prefix}[.]ber.*") == names[:2]
    assert offsets.topic_names(connection, [], f"{prefix}[.]ber") == []
    assert offsets.topic_names(connection, [], "__.*") == []
    assert offsets.partition_count(connection, [], f"{prefix}.*") == 6
    assert offsets.partition_count(connection, [names[0], unique("not-yet")]) == 3
    with pytest.raises(BadInput, match="is not a regular expression"):
        offsets.topic_names(connection, [], "(")


def test_positions_and_moments_become_offsets(connection: Connection) -> None:
    topic = new_topic(connection, 2, retention_ms="-1")
    fill(connection, topic, 5, timestamp=1_000_000)
    fill(connection, topic, 5, timestamp=2_000_000)
    assert offsets.resolve_time(connection, [topic], 1_500_000) == {topic: {0: 5, 1: 0}}
    assert offsets.resolve_time(connection, [topic], 3_000_000) == {topic: {0: 10, 1: 0}}
    assert offsets.resolve(connection, [topic], Position("end")) == {topic: {0: 10, 1: 0}}


def test_nothing_is_gone(connection: Connection) -> None:
    topic = new_topic(connection, 2)
    fill(connection, topic, 5)
    assert offsets.gone(connection, {topic: {0: 5, 1: 0}}) == []
    assert offsets.gone(connection, {topic: {0: 0}}) == []


def test_what_is_gone_is_said_with_the_choices(connection: Connection) -> None:
    topic, other = new_topic(connection, 2), new_topic(connection)
    fill(connection, topic, 10)
    truncate(connection, topic, plan_truncate(connection, topic, parse_position("8", "--before"), [0]))
    delete_topics(connection, [other])
    gaps = offsets.gone(connection, {topic: {0: 3, 1: 4}, other: {0: 1}})
    assert sorted(gaps, key=lambda gap: gap.topic != topic) == [
        Gap(topic, 0, 3, 8, 10), Gap(topic, 1, 4, 0, 0), Gap(other, 0, 1, None, None)
    ]  # fmt: skip
    assert [gap.records for gap in gaps if gap.topic == topic] == [5, None]
    text = offsets.gone_text("clicks", gaps)
    assert f"{topic}-0 begins at offset 8 now: 5 from 3 on were deleted unread" in text
    assert f"{topic}-1 ends at offset 0, but is to be read from 4 on: it was made anew" in text
    assert f"{other}-0 is not there any more" in text
    assert (
        f"`millstream pipeline reset clicks --to {topic}:0=8,{topic}:1=0 --execute` goes on with what is left" in text
    )
    assert "--to earliest --execute" in text
    assert "--to latest --execute" in text
    assert "skipped nothing" in text
