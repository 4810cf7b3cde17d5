"""`millstream group` as a person meets it."""

from collections.abc import Iterator

import pytest

from millstream.testing import running_server
from support.cli import refused
from support.cluster import unique
from support.topics import Commands


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    with running_server() as server:
        yield Commands(server.bootstrap_servers)


@pytest.fixture(scope="module")
def topic(commands: Commands) -> str:
    name = commands.topic()
    commands.fill(name, *[b"x"] * 2000)
    return name


@pytest.fixture
def group(commands: Commands, topic: str) -> str:
    """A group with a position at 500 of 2000."""
    name = unique("group")
    commands("group", "seek", name, "--topic", topic, "--to", "500", "--execute")
    return name


def test_no_groups() -> None:
    with running_server() as server:
        assert Commands(server.bootstrap_servers)("group", "list").stdout == "no groups\n"
        assert Commands(server.bootstrap_servers)("group", "lag").stdout == "no groups\n"
        assert Commands(server.bootstrap_servers).json("group", "list") == []


def test_tables(commands: Commands, topic: str, group: str) -> None:
    heading, *lines = commands("group", "list").stdout.splitlines()
    assert heading.split() == ["group", "type", "state", "protocol"]
    assert [group, "classic", "Empty"] in [line.split()[:3] for line in lines]
    heading, line = commands("group", "lag", group).stdout.splitlines()
    assert heading.split() == ["group", "state", "topics", "partitions", "lag"]
    assert line.split() == [group, "Empty", "1", "1", "1,500"]
    facts, table = commands("group", "describe", group).stdout.split("\n\n")
    assert facts.splitlines()[-1].split() == ["lag", "1,500"]
    assert table.splitlines()[1].split() == [topic, "0", "500", "2000", "1500", "-"]


def test_the_seek_table_shows_before_after_and_what_was_out_of_range(
    commands: Commands, topic: str, group: str
) -> None:
    lines = commands("group", "seek", group, "--to", "+9000").stdout.splitlines()
    assert lines[0].split() == ["topic", "partition", "before", "after", "change", "note"]
    assert lines[1].split(maxsplit=5) == [topic, "0", "500", "2000", "+1500", "9500 is outside 0..2000"]
    assert lines[-1] == "nothing was moved; --execute does it"
    assert commands("group", "seek", group, "--to", "-100", "--execute").stdout.endswith(f"moved {group}\n")
    assert "400" in commands("group", "describe", group).stdout


def test_states_and_types_are_filters(commands: Commands, group: str) -> None:
    def names(*arguments: str) -> list[str]:
        return [row["group"] for row in commands.json("group", "list", *arguments)]

    assert group in names("--state", "empty", "--type", "classic")
    assert group in names("--state", "Stable", "--state", "EMPTY")
    assert group not in names("--state", "preparing-rebalance")
    assert group not in names("--type", "consumer", "--type", "share")


def test_delete_asks(commands: Commands, group: str) -> None:
    assert "--yes" in commands.refused(2, "group", "delete", group)
    assert commands.run("group", "delete", group, input="n\n", terminal=True).exit_code == 1
    assert commands("group", "delete", group, input="y\n", terminal=True).stdout == f"deleted {group}\n"
    assert group in commands.refused(4, "group", "describe", group)


def test_a_group_without_positions(commands: Commands) -> None:
    topic, group = commands.topic(), unique("group")
    with commands.member(group, topic):
        text = commands("group", "describe", group).stdout
        assert "a-member" in text
        assert "lag          0 (not known for 1 of 1 partitions: " in text
    message = commands.refused(2, "group", "seek", group, "--to", "earliest")
    assert "--topic" in message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list", "--state", "sleepy"], ["--state", "'sleepy'", "Stable"]),
        (["list", "--type", "classik"], ["--type", "did you mean classic?"]),
        (["describe"], ["GROUP"]),
        (["lag", "g", "--max", "-1"], ["--max"]),
        (["lag", "g", "--max", "x"], ["--max", "x"]),
        (["delete"], ["GROUP"]),
        (["seek", "g"], ["--to"]),
        (["seek", "g", "--to", "soon"], ["--to", "'soon'", "earliest", "+N"]),
        (["seek", "g", "--to", "latest", "--topic", "t:x"], ["--topic", "'t:x'", "TOPIC:PARTITION"]),
        (["seek", "g", "--to", "latest", "--topic", ":1"], ["--topic"]),
        (["seek", "g", "--to", "latest", "--topic", "t", "--topic", "t:1"], ["--topic", "twice"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_bad_input_is_named(commands: Commands, arguments: list[str], words: list[str]) -> None:
    message = commands.refused(2, "group", *arguments)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    "arguments",
    [["list"], ["describe", "g"], ["lag"], ["delete", "g", "--yes"], ["seek", "g", "--to", "latest"]],
    ids=lambda value: value[0],
)
def test_an_unreachable_cluster_is_said_at_once(arguments: list[str]) -> None:
    assert "127.0.0.1:1" in refused(3, "group", *arguments, "--bootstrap", "127.0.0.1:1")
