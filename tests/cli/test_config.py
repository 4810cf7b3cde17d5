"""`millstream config` as a person meets it."""

from collections.abc import Iterator

import pytest

from millstream.testing import running_server
from support.cli import refused
from support.topics import Commands


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    with running_server() as server:
        yield Commands(server.bootstrap_servers)


def test_the_table_of_a_topic(commands: Commands) -> None:
    topic = commands.topic(1, "--config", "retention.ms=86400000", "--config", "segment.bytes=1048576")
    heading, *lines = commands("config", "get", "topic", topic).stdout.splitlines()
    assert heading.split() == ["config", "value", "set", "on", "note"]
    assert "retention.ms         86400000  topic        1d 0h" in lines
    assert "segment.bytes        1048576   topic        1.0 MiB" in lines
    everything = commands("config", "get", "topic", topic, "--all").stdout
    assert 'leader.replication.throttled.replicas    ""' in everything


def test_the_table_of_a_broker(commands: Commands) -> None:
    lines = commands("config", "get", "broker", "1").stdout.splitlines()
    (line,) = [line for line in lines if line.startswith("node.id")]
    assert line.split() == ["node.id", "1", "static", "read-only"]
    assert commands("config", "get", "broker").stdout.splitlines() == lines
    assert {row["broker"] for row in commands.json("config", "get", "broker")} == {"1"}


def test_the_table_of_a_change(commands: Commands) -> None:
    topic = commands.topic()
    lines = commands("config", "set", "topic", topic, "retention.ms=1000", "segment.ms=2000").stdout.splitlines()
    assert lines[0].split() == ["config", "before", "after", "set", "on"]
    assert lines[2].split() == ["segment.ms", "604800000", "2000", "topic"]
    dry = commands("config", "set", "topic", topic, "retention.ms=5", "--dry-run").stdout
    assert dry.endswith("nothing was changed (--dry-run)\n")
    lines = commands("config", "unset", "topic", topic, "retention.ms", "segment.ms").stdout.splitlines()
    assert lines[1].split() == ["retention.ms", "1000", "604800000", "default"]


def test_a_value_may_hold_equals_signs_and_be_empty(commands: Commands) -> None:
    topic = commands.topic()
    commands("config", "set", "topic", topic, "leader.replication.throttled.replicas=")
    message = commands.refused(2, "config", "set", "topic", topic, "cleanup.policy=a=b")
    assert "a=b" in message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["get", "topics", "x"], ["'topics'", "did you mean topic?"]),
        (["get", "topic"], ["NAME"]),
        (["set", "topic", "x"], ["KEY=VALUE"]),
        (["set", "topic", "x", "retention.ms"], ["KEY=VALUE", "'retention.ms'", "name=value"]),
        (["set", "topic", "x", "a=1", "a=2"], ["a is given twice"]),
        (["set", "brokers", "1", "a=1"], ["'brokers'", "did you mean broker?"]),
        (["unset", "topic", "x"], ["KEY"]),
        (["unset", "thing", "x", "y"], ["'thing'", "topic or broker"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_bad_input_is_named(commands: Commands, arguments: list[str], words: list[str]) -> None:
    message = commands.refused(2, "config", *arguments)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    "arguments",
    [["get", "topic", "x"], ["get", "broker"], ["set", "topic", "x", "a=1"], ["unset", "broker", "1", "a"]],
    ids=lambda value: " ".join(value),
)
def test_an_unreachable_cluster_is_said_at_once(arguments: list[str]) -> None:
    assert "127.0.0.1:1" in refused(3, "config", *arguments, "--bootstrap", "127.0.0.1:1")
