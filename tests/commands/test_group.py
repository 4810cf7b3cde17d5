"""`millstream group` on any cluster, with groups of both protocols."""

import pytest
from confluent_kafka import Consumer, TopicPartition

from support.cluster import eventually, unique
from support.topics import Commands

PROTOCOLS = pytest.mark.parametrize(
    ("kind", "properties"), [("classic", {}), ("consumer", {"group.protocol": "consumer"})], ids=["classic", "consumer"]
)


def commit(bootstrap: str, group: str, topic: str, *offsets: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(
        offsets=[TopicPartition(topic, partition, offset) for partition, offset in enumerate(offsets)],
        asynchronous=False,
    )
    consumer.close()


@pytest.fixture
def topic(millstream_command: Commands) -> str:
    """Two partitions with ten records each, a second apart."""
    name = millstream_command.lasting_topic(2)
    for number in range(10):
        for partition in (0, 1):
            stamp = 1700000000000 + number * 1000
            millstream_command.fill(name, b"%d" % number, partition=partition, timestamp=stamp)
    return name


@PROTOCOLS
def test_members_and_lag(millstream_command: Commands, topic: str, kind: str, properties: dict[str, str]) -> None:
    group = unique("group")
    commit(millstream_command.bootstrap, group, topic, 4)
    with millstream_command.member(group, topic, **properties):

        def stable() -> bool:
            listed = millstream_command.json("group", "list", "--state", "stable", "--type", kind)
            return group in [row["group"] for row in listed]

        eventually(stable)
        found = millstream_command.json("group", "describe", group)
        assert (found["type"], found["state"]) == (kind, "Stable")
        (described,) = found["members"]
        assert described["client_id"] == "a-member"
        assert described["partitions"] == {topic: [0, 1]}
        first, second = found["partitions"]
        assert (first["committed"], first["end"], first["lag"], first["client_id"]) == (4, 10, 6, "a-member")
        assert (second["committed"], second["end"], second["lag"]) == (None, 10, None)
        text = millstream_command("group", "describe", group).stdout
        assert f"{topic}:0,1" in text

        assert "in use" in millstream_command.refused(1, "group", "delete", group, "--yes")
        seek = ["group", "seek", group, "--topic", topic, "--to", "earliest"]
        assert "stop its consumers" in millstream_command(*seek).stdout
        assert "stop its consumers" in millstream_command.refused(1, *seek, "--execute")
    eventually(lambda: millstream_command.json("group", "lag", group)[0]["state"] == "Empty")
    assert millstream_command.json("group", "lag", group)[0]["lag"] == 6
    assert millstream_command("group", "delete", group, "--yes").stdout == f"deleted {group}\n"
    assert group not in [row["group"] for row in millstream_command.json("group", "list")]


def test_lag_for_scripts(millstream_command: Commands, topic: str) -> None:
    group, other = unique("group"), unique("group")
    commit(millstream_command.bootstrap, group, topic, 4, 10)
    commit(millstream_command.bootstrap, other, topic, 10, 10)
    assert [row["lag"] for row in millstream_command.json("group", "lag", group, other)] == [6, 0]
    millstream_command("group", "lag", group, "--max", "6")
    result = millstream_command.run("group", "lag", group, other, "--max", "5")
    assert result.exit_code == 1
    assert f"{group} is 6 behind; --max is 5" in result.stderr
    assert other not in result.stderr
    everything = {row["group"]: row["lag"] for row in millstream_command.json("group", "lag")}
    assert (everything[group], everything[other]) == (6, 0)


@pytest.mark.parametrize(
    ("to", "after"),
    [
        ("earliest", [0, 0]),
        ("latest", [10, 10]),
        ("7", [7, 7]),
        ("+2", [6, 8]),
        ("-3", [1, 3]),
        ("+100", [10, 10]),
        ("-100", [0, 0]),
        ("@1700000004500", [5, 5]),
        ("2023-11-14T22:13:28Z", [8, 8]),
        ("1h", [10, 10]),
    ],
)
def test_seek(millstream_command: Commands, topic: str, to: str, after: list[int]) -> None:
    group = unique("group")
    commit(millstream_command.bootstrap, group, topic, 4, 6)
    plan = millstream_command.json("group", "seek", group, "--topic", topic, "--to", to)
    assert not plan["executed"]
    assert [move["before"] for move in plan["partitions"]] == [4, 6]
    assert [move["after"] for move in plan["partitions"]] == after
    assert millstream_command.json("group", "lag", group)[0]["lag"] == 10
    done = millstream_command.json("group", "seek", group, "--to", to, "--execute")
    assert done["executed"]
    found = millstream_command.json("group", "describe", group)
    assert [part["committed"] for part in found["partitions"]] == after


def test_seek_of_one_partition_and_of_a_new_group(millstream_command: Commands, topic: str) -> None:
    group = unique("group")
    plan = millstream_command("group", "seek", group, "--topic", f"{topic}:1", "--to", "3").stdout
    assert f"there is no group {group} yet" in plan
    millstream_command("group", "seek", group, "--topic", f"{topic}:1", "--to", "3", "--execute")
    (only,) = millstream_command.json("group", "describe", group)["partitions"]
    assert (only["partition"], only["committed"], only["lag"]) == (1, 3, 7)
    assert "no position in" in millstream_command.refused(2, "group", "seek", group, "--topic", topic, "--to", "+1")
    assert "0 to 1" in millstream_command.refused(2, "group", "seek", group, "--topic", f"{topic}:2", "--to", "3")


def test_a_group_that_is_not_there(millstream_command: Commands, topic: str) -> None:
    group = unique("group")
    commit(millstream_command.bootstrap, group, topic, 1)
    wrong = group.replace("-", "--", 1)
    for arguments in (
        ["describe", wrong],
        ["lag", wrong],
        ["delete", wrong, "--yes"],
        ["seek", wrong, "--to", "latest"],
    ):
        assert f"there is no group {wrong}; did you mean" in millstream_command.refused(4, "group", *arguments)
    missing = ["group", "seek", group, "--topic", topic + "x", "--to", "latest"]
    assert "there is no topic" in millstream_command.refused(4, *missing)


def test_the_lag_of_a_deleted_topic_is_not_known(millstream_command: Commands, topic: str) -> None:
    group, second = unique("group"), millstream_command.topic()
    millstream_command.fill(second, b"x")
    commit(millstream_command.bootstrap, group, topic, 8)
    commit(millstream_command.bootstrap, group, second, 0)
    assert millstream_command.json("group", "lag", group)[0]["lag"] == 3
    millstream_command("topic", "delete", topic, "--yes")
    assert millstream_command.json("group", "lag", group)[0]["lag"] == 1
