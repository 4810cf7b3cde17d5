"""`millstream topic` on any cluster: what is made, changed and deleted is what Kafka then has."""

import os

import pytest

from support.cluster import unique
from support.topics import Commands


def test_create_describe_list_delete(millstream_command: Commands) -> None:
    name = unique("orders")
    made = millstream_command.json(
        "topic", "create", name, "--partitions", "3", "--replication-factor", "1", "--config", "retention.ms=3600000"
    )
    assert made == {
        "name": name,
        "created": True,
        "partitions": 3,
        "replication_factor": 1,
        "configs": {"retention.ms": "3600000"},
    }
    millstream_command.fill(name, b"a", b"b", partition=1)

    topic = millstream_command.json("topic", "describe", name)
    assert topic["configs"] == {"retention.ms": "3600000"}
    assert topic["replication_factor"] == 1
    assert len(topic["id"]) == 22
    assert [part["partition"] for part in topic["partitions"]] == [0, 1, 2]
    second = topic["partitions"][1]
    assert (second["first_offset"], second["end_offset"], second["records"]) == (0, 2, 2)
    assert second["replicas"] == second["isr"] == [second["leader"]]
    assert second["size"] > 60

    (line,) = [row for row in millstream_command.json("topic", "list") if row["name"] == name]
    assert (line["partitions"], line["records"], line["internal"]) == (3, 2, False)
    assert line["configs"] == {"retention.ms": "3600000"}
    assert line["size"] == second["size"]

    assert millstream_command.json("topic", "delete", name, "--yes") == {"deleted": [name]}
    assert name not in [row["name"] for row in millstream_command.json("topic", "list")]
    assert name in millstream_command.refused(4, "topic", "describe", name)


def test_the_clusters_own_number_of_partitions_is_taken_if_none_is_given(millstream_command: Commands) -> None:
    made = millstream_command.json("topic", "create", unique("plain"))
    assert (made["partitions"], made["replication_factor"]) == (1, 1)


def test_internal_topics_are_listed_only_when_asked_for(millstream_command: Commands) -> None:
    assert "__consumer_offsets" not in [row["name"] for row in millstream_command.json("topic", "list")]
    internal = millstream_command.json("topic", "list", "--internal")
    (offsets,) = [row for row in internal if row["name"] == "__consumer_offsets"]
    assert offsets["internal"]


def test_a_topic_that_is_there_already(millstream_command: Commands) -> None:
    name = millstream_command.topic(2)
    assert "--if-not-exists" in millstream_command.refused(1, "topic", "create", name)
    again = millstream_command.json("topic", "create", name, "--partitions", "5", "--if-not-exists")
    assert (again["created"], again["partitions"]) == (False, 2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--config", "retention.m=5"], ["retention.m", "did you mean retention.ms?"]),
        (["--config", "retention.ms=soon"], ["--config retention.ms=soon", "INVALID_CONFIG"]),
        (["--config", "cleanup.policy=keep"], ["cleanup.policy=keep"]),
        (["--replication-factor", "7"], ["INVALID_REPLICATION_FACTOR"]),
    ],
    ids=lambda value: value[-1],
)
def test_what_the_cluster_refuses_is_said_in_its_words(
    millstream_command: Commands, arguments: list[str], words: list[str]
) -> None:
    name = unique("never")
    message = millstream_command.refused(2, "topic", "create", name, *arguments)
    for word in words:
        assert word in message
    assert name not in [row["name"] for row in millstream_command.json("topic", "list")]


def test_a_bad_topic_name(millstream_command: Commands) -> None:
    assert "INVALID_TOPIC" in millstream_command.refused(2, "topic", "create", "no/slash")


def test_the_nearest_name_is_offered_for_a_topic_that_is_not_there(millstream_command: Commands) -> None:
    name = millstream_command.topic()
    wrong = name.replace("-", "--", 1)
    for command in (
        ["describe", wrong],
        ["alter", wrong, "--unset", "retention.ms"],
        ["delete", wrong, "--yes"],
        ["add-partitions", wrong, "--to", "9"],
        ["truncate", wrong, "--before", "all"],
        ["clone", wrong, unique("copy")],
        ["produce", wrong],
        ["consume", wrong],
        ["tail", wrong],
    ):
        message = millstream_command.refused(4, "topic", *command, input="x\n")
        assert f"there is no topic {wrong}; did you mean" in message, command


def test_alter_sets_and_unsets(millstream_command: Commands) -> None:
    name = millstream_command.topic(1, "--config", "retention.ms=1000000", "--config", "segment.ms=500000")
    changes = millstream_command.json(
        "topic", "alter", name, "--config", "retention.ms=2000000", "--unset", "segment.ms"
    )
    assert changes[0] == {"name": "retention.ms", "before": "1000000", "after": "2000000", "source": "topic"}
    assert (changes[1]["name"], changes[1]["before"]) == ("segment.ms", "500000")
    configs = millstream_command.json("topic", "describe", name)["configs"]
    assert configs == {"retention.ms": "2000000"}
    message = millstream_command.refused(2, "topic", "alter", name, "--config", "retention.sm=1")
    assert "did you mean retention.ms?" in message


def test_partitions_are_added(millstream_command: Commands) -> None:
    name = millstream_command.topic(1)
    assert millstream_command.json("topic", "add-partitions", name, "--to", "3")["partitions"] == 3
    assert millstream_command.json("topic", "add-partitions", name, "--add", "2")["before"] == 3
    assert len(millstream_command.json("topic", "describe", name)["partitions"]) == 5
    assert "has 5 partitions" in millstream_command.refused(2, "topic", "add-partitions", name, "--to", "5")


def test_truncate_shows_the_plan_and_does_it_when_told(millstream_command: Commands) -> None:
    name = millstream_command.topic(2)
    millstream_command.fill(name, *[b"%d" % number for number in range(10)])
    millstream_command.fill(name, b"other", partition=1)
    plan = millstream_command.json("topic", "truncate", name, "--before", "4")
    assert (plan["executed"], plan["records"]) == (False, 5)
    assert [part["before"] for part in plan["partitions"]] == [4, 1]
    assert millstream_command.json("topic", "describe", name)["partitions"][0]["first_offset"] == 0

    millstream_command("topic", "truncate", name, "--before", "-3", "--partition", "0", "--execute")
    values = millstream_command("topic", "consume", name, "--partition", "0", "--format", "raw").stdout
    assert values == "7\n8\n9\n"
    millstream_command("topic", "truncate", name, "--before", "all", "--execute")
    assert millstream_command("topic", "consume", name).stdout == ""
    partitions = millstream_command.json("topic", "describe", name)["partitions"]
    assert [(part["first_offset"], part["end_offset"]) for part in partitions] == [(10, 10), (1, 1)]
    assert "0 records would" in millstream_command("topic", "truncate", name, "--before", "0").stdout


def test_truncate_before_a_time(millstream_command: Commands) -> None:
    name = millstream_command.lasting_topic()
    for stamp in (1000, 2000, 3000):
        millstream_command.fill(name, b"%d" % stamp, timestamp=1700000000000 + stamp)
    plan = millstream_command.json("topic", "truncate", name, "--before", "2023-11-14T22:13:22Z")
    assert plan["records"] == 1
    assert millstream_command.json("topic", "truncate", name, "--before", "1s")["records"] == 3


def test_truncate_of_a_compacted_topic_is_explained(millstream_command: Commands) -> None:
    name = millstream_command.topic(1, "--config", "cleanup.policy=compact")
    millstream_command.fill(name, b"v", key=b"k")
    message = millstream_command.refused(1, "topic", "truncate", name, "--before", "all", "--execute")
    assert "cleanup.policy" in message


def test_clone_makes_the_same_topic_with_the_same_records(millstream_command: Commands) -> None:
    source = millstream_command.lasting_topic(2, "--config", "retention.bytes=-1", "--config", "segment.bytes=2000000")
    headers = [("a", b"1"), ("a", b"\xff"), ("none", None)]
    millstream_command.fill(source, b"v1", None, b"\x00\xff", key=b"k", headers=headers, timestamp=1700000000123)
    millstream_command.fill(source, b"p1", partition=1, timestamp=1700000000456)
    target = unique("copy")
    cloned = millstream_command.json(
        "topic", "clone", source, target, "--data", "--config", "retention.bytes=1000000000"
    )
    assert (cloned["partitions"], cloned["records"]) == (2, 4)
    configs = millstream_command.json("topic", "describe", target)["configs"]
    assert configs == {"retention.bytes": "1000000000", "retention.ms": "-1", "segment.bytes": "2000000"}

    def records(topic: str) -> list[dict[str, object]]:
        found = millstream_command("topic", "consume", topic, "--json").json_lines
        return sorted(
            ({**record, "topic": ""} for record in found), key=lambda record: (record["partition"], record["offset"])
        )

    assert records(target) == records(source)
    assert "already" in millstream_command.refused(1, "topic", "clone", source, target)
    assert "source itself" in millstream_command.refused(2, "topic", "clone", source, source)


def test_clone_without_data(millstream_command: Commands) -> None:
    source = millstream_command.topic(3)
    millstream_command.fill(source, b"x")
    target = unique("copy")
    assert "no records" in millstream_command("topic", "clone", source, target).stdout
    topic = millstream_command.json("topic", "describe", target)
    assert [part["records"] for part in topic["partitions"]] == [0, 0, 0]


def test_a_clone_that_cannot_take_the_records_says_how_far_it_came(millstream_command: Commands) -> None:
    source, target = millstream_command.topic(), unique("copy")
    millstream_command.fill(source, os.urandom(5000))
    arguments = ["topic", "clone", source, target, "--data", "--config", "max.message.bytes=1000"]
    message = millstream_command.refused(1, *arguments)
    assert f"{target} was made, but only 0 records could be copied" in message
    assert "too large" in message
