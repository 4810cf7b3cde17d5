"""`millstream config` on any cluster."""

from collections.abc import Iterator

import pytest

from support.topics import Commands


@pytest.fixture
def broker(millstream_command: Commands) -> Iterator[str]:
    """The id of a broker; what the test sets on it and on all brokers is gone afterwards."""
    rows = millstream_command.json("config", "get", "broker", "--all")
    yield rows[0].get("broker", "")
    for name in (rows[0]["broker"], "default"):
        millstream_command("config", "unset", "broker", name, "log.cleaner.threads", "message.max.bytes")


def test_topic_configs_and_where_they_come_from(millstream_command: Commands) -> None:
    topic = millstream_command.topic(1, "--config", "retention.ms=5000000")
    rows = {row["name"]: row for row in millstream_command.json("config", "get", "topic", topic)}
    assert (rows["retention.ms"]["value"], rows["retention.ms"]["source"]) == ("5000000", "topic")
    assert "segment.bytes" not in rows
    rows = {row["name"]: row for row in millstream_command.json("config", "get", "topic", topic, "--all")}
    assert rows["segment.jitter.ms"] == {
        "name": "segment.jitter.ms",
        "value": "0",
        "source": "default",
        "read_only": False,
        "sensitive": False,
    }
    two = millstream_command.json("config", "get", "topic", topic, "segment.ms", "retention.ms")
    assert [row["name"] for row in two] == ["segment.ms", "retention.ms"]
    text = millstream_command("config", "get", "topic", topic, "retention.ms").stdout
    assert "1h 23m" in text


def test_set_and_unset_a_topic_config(millstream_command: Commands) -> None:
    topic = millstream_command.topic()
    (dry,) = millstream_command.json("config", "set", "topic", topic, "retention.ms=1234567", "--dry-run")
    assert dry["after"] == "1234567"
    assert millstream_command.json("config", "get", "topic", topic, "retention.ms")[0]["source"] == "default"
    (change,) = millstream_command.json("config", "set", "topic", topic, "retention.ms=1234567")
    assert (change["after"], change["source"]) == ("1234567", "topic")
    assert millstream_command.json("config", "get", "topic", topic, "retention.ms")[0]["value"] == "1234567"
    millstream_command("config", "unset", "topic", topic, "retention.ms", "--dry-run")
    (change,) = millstream_command.json("config", "unset", "topic", topic, "retention.ms")
    assert change["before"] == "1234567"
    assert millstream_command.json("config", "get", "topic", topic, "retention.ms")[0]["source"] == "default"


@pytest.mark.parametrize("dry", [[], ["--dry-run"]], ids=["", "dry"])
def test_what_is_refused_changes_nothing(millstream_command: Commands, dry: list[str]) -> None:
    topic = millstream_command.topic()
    wrong = millstream_command.refused(2, "config", "set", "topic", topic, "segment.ms=77777", "retention.sm=1", *dry)
    assert "there is no config retention.sm; did you mean retention.ms?" in wrong
    assert "retention.ms=x" in millstream_command.refused(2, "config", "set", "topic", topic, "retention.ms=x", *dry)
    assert millstream_command.json("config", "get", "topic", topic, "segment.ms")[0]["source"] == "default"


def test_broker_configs(millstream_command: Commands, broker: str) -> None:
    (row,) = millstream_command.json("config", "get", "broker", broker, "node.id")
    assert (row["value"], row["source"], row["read_only"]) == (broker, "static", True)
    (change,) = millstream_command.json("config", "set", "broker", broker, "log.cleaner.threads=2")
    assert (change["after"], change["source"]) == ("2", "broker")
    (change,) = millstream_command.json("config", "set", "broker", "default", "message.max.bytes=2000000")
    assert (change["after"], change["source"]) == ("2000000", "all brokers")
    both = {row["name"]: row["source"] for row in millstream_command.json("config", "get", "broker")}
    assert (both["log.cleaner.threads"], both["message.max.bytes"]) == ("broker", "all brokers")
    names = [row["name"] for row in millstream_command.json("config", "get", "broker", "default")]
    assert "message.max.bytes" in names
    assert "log.cleaner.threads" not in names


def test_a_broker_config_that_cannot_be_changed(millstream_command: Commands, broker: str) -> None:
    for name in (broker, "default"):
        assert "node.id" in millstream_command.refused(2, "config", "set", "broker", name, "node.id=5")
    wrong = millstream_command.refused(2, "config", "set", "broker", "default", "log.cleaner.threads=many")
    assert "log.cleaner.threads=many" in wrong


def test_what_is_not_there(millstream_command: Commands) -> None:
    topic = millstream_command.topic()
    for arguments, word in (
        (["get", "topic", topic + "x"], "there is no topic"),
        (["set", "topic", topic + "x", "retention.ms=1"], "there is no topic"),
        (["unset", "topic", topic + "x", "retention.ms"], "there is no topic"),
        (["get", "topic", topic, "retention"], "has no config retention"),
        (["get", "broker", "4711"], "no broker 4711 is up"),
        (["set", "broker", "x", "log.cleaner.threads=1"], "no broker x is up"),
        (["get", "broker", "default", "no.such"], "no.such"),
    ):
        assert word in millstream_command.refused(4, "config", *arguments)
