"""`millstream topic` as a person meets it: tables, questions, and what is said about bad input."""

from collections.abc import Iterator

import pytest

from millstream.testing import running_server
from support.cli import refused, run, succeed
from support.cluster import unique
from support.topics import Commands


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    with running_server() as server:
        yield Commands(server.bootstrap_servers)


def test_no_topics() -> None:
    with running_server() as server:
        assert succeed("topic", "list", "--bootstrap", server.bootstrap_servers).stdout.startswith("no topics")
        assert succeed("topic", "list", "--bootstrap", server.bootstrap_servers, "--json").json == []


def test_the_list_as_a_table(commands: Commands) -> None:
    topic = commands.topic(2, "--config", "retention.ms=1000", "--config", "segment.ms=2000")
    commands.fill(topic, b"x" * 2000)
    heading, *lines = commands("topic", "list").stdout.splitlines()
    assert heading.split() == ["topic", "partitions", "replicas", "records", "size", "configs"]
    (line,) = [line for line in lines if line.startswith(topic)]
    assert line.split() == [topic, "2", "1", "1", "2.0", "KiB", "retention.ms=1000,", "segment.ms=2000"]


def test_a_table_in_a_pipe_has_one_line_a_row_and_on_a_terminal_it_fits(commands: Commands) -> None:
    topic = commands.topic(1, "--config", "retention.ms=1000", "--config", "segment.ms=2000", "--config", "flush.ms=99")
    (line,) = [line for line in commands("topic", "list", columns=40).stdout.splitlines() if topic in line]
    assert line.endswith("flush.ms=99, retention.ms=1000, segment.ms=2000")
    narrow = commands("topic", "list", terminal=True, columns=80, NO_COLOR="1", TERM="dumb").stdout
    assert max(len(line.rstrip()) for line in narrow.splitlines()) <= 80
    assert topic in narrow


def test_describe_as_a_table(commands: Commands) -> None:
    topic = commands.topic(2)
    text = commands("topic", "describe", topic).stdout
    facts, table = text.split("\n\n")
    assert facts.splitlines()[0].split() == ["topic", topic]
    assert "configs             none of its own" in facts
    assert table.splitlines()[1].split() == ["0", "1", "1", "1", "0", "0", "0", "0", "B"]
    internal = commands("topic", "describe", "__consumer_offsets") if _has_groups(commands) else None
    assert internal is None or "(internal)" in internal.stdout


def _has_groups(commands: Commands) -> bool:
    topic = commands.topic()
    commands("topic", "consume", topic, "--group", unique("group"))
    return "__consumer_offsets" in commands("topic", "list", "--internal").stdout


def test_sentences(commands: Commands) -> None:
    name = unique("said")
    made = commands("topic", "create", name, "--partitions", "1")
    assert made.stdout == f"created {name}: 1 partition, replication factor 1\n"
    again = commands("topic", "create", name, "--if-not-exists").stdout
    assert again == f"{name} is there already: 1 partition, replication factor 1; nothing was changed\n"
    more = commands("topic", "add-partitions", name, "--add", "1").stdout
    assert more == f"{name} has 2 partitions now; it had 1\n"
    altered = commands("topic", "alter", name, "--config", "retention.ms=5").stdout.splitlines()
    assert altered[0].split() == ["config", "before", "after", "set", "on"]
    assert altered[1].split() == ["retention.ms", "604800000", "5", "topic"]
    assert commands("topic", "delete", name, "-y").stdout == f"deleted {name}\n"


def test_delete_asks_on_a_terminal(commands: Commands) -> None:
    name = commands.topic()
    no = commands.run("topic", "delete", name, input="n\n", terminal=True)
    assert no.exit_code == 1
    assert f"Delete {name} with all records" in no.stderr
    assert "nothing was done" in no.stderr
    assert name in commands("topic", "list").stdout
    commands("topic", "delete", name, input="y\n", terminal=True)
    assert name not in commands("topic", "list").stdout


def test_delete_in_a_script_needs_yes(commands: Commands) -> None:
    name = commands.topic()
    assert "--yes" in commands.refused(2, "topic", "delete", name, input="y\n")
    assert name in commands("topic", "list").stdout


def test_delete_of_several_is_all_or_nothing(commands: Commands) -> None:
    first, second = commands.topic(), commands.topic()
    commands.refused(4, "topic", "delete", first, "not-there", "--yes")
    assert first in commands("topic", "list").stdout
    assert commands.json("topic", "delete", first, second, first, "--yes")["deleted"] == [first, second, first]


def test_the_truncate_table(commands: Commands) -> None:
    topic = commands.topic()
    commands.fill(topic, b"1", b"2")
    lines = commands("topic", "truncate", topic, "--before", "1").stdout.splitlines()
    assert lines[1].split() == ["0", "0", "1", "2", "1"]
    assert lines[-1] == "1 record would be deleted; --execute does it"
    assert commands("topic", "truncate", topic, "--before", "1", "--execute").stdout.endswith("1 record deleted\n")


def test_clone_says_what_it_did_and_shows_progress_on_a_terminal(commands: Commands) -> None:
    source, target = commands.topic(), unique("copy")
    commands.fill(source, b"x" * 1024)
    result = commands("topic", "clone", source, target, "--data", "--replication-factor", "1", terminal=True)
    assert result.stdout == f"cloned {source} to {target}: 1 partition, replication factor 1, 1 record (1.0 KiB)\n"
    assert "1 of 1" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["create", "x", "--partitions", "0"], ["--partitions", "greater than or equal to 1"]),
        (["create", "x", "--partitions", "many"], ["--partitions", "integer"]),
        (["create", "x", "--replication-factor", "0"], ["--replication-factor"]),
        (["create", "x", "--config", "retention.ms"], ["--config", "'retention.ms'", "name=value"]),
        (["create", "x", "--config", "=5"], ["--config", "name=value"]),
        (["create", "x", "--config", "a=5", "--config", "a=6"], ["--config", "a is given twice"]),
        (["create"], ["NAME"]),
        (["describe"], ["NAME"]),
        (["alter", "x"], ["--config NAME=VALUE", "--unset NAME"]),
        (["alter", "x", "--config", "a=1", "--unset", "a"], ["a cannot be set and unset at once"]),
        (["delete"], ["NAME"]),
        (["add-partitions", "x"], ["--to", "--add"]),
        (["add-partitions", "x", "--to", "3", "--add", "1"], ["--to", "--add"]),
        (["add-partitions", "x", "--add", "0"], ["--add"]),
        (["truncate", "x"], ["--before"]),
        (["truncate", "x", "--before", "soon"], ["--before", "'soon'", "offset"]),
        (["truncate", "x", "--before", "1", "--partition", "a"], ["--partition", "'a'"]),
        (["clone", "x"], ["TARGET"]),
        (["clone", "x", "y", "--config", "z"], ["--config", "'z'"]),
        (["frobnicate"], ["frobnicate"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_bad_input_is_named(commands: Commands, arguments: list[str], words: list[str]) -> None:
    message = commands.refused(2, "topic", *arguments)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["create", "x"],
        ["describe", "x"],
        ["alter", "x", "--unset", "retention.ms"],
        ["delete", "x", "--yes"],
        ["add-partitions", "x", "--to", "2"],
        ["truncate", "x", "--before", "all"],
        ["clone", "x", "y"],
        ["produce", "x"],
        ["consume", "x"],
        ["consume", "x", "--group", "g"],
        ["tail", "x"],
    ],
    ids=lambda value: value[0],
)
def test_an_unreachable_cluster_is_said_at_once(arguments: list[str]) -> None:
    message = refused(3, "topic", *arguments, "--bootstrap", "127.0.0.1:1", input="x\n")
    assert "127.0.0.1:1" in message
    assert "is the cluster running" in message


def test_help_names_every_command() -> None:
    text = run("topic", "--help").stdout
    for name in ("list", "create", "describe", "alter", "delete", "add-partitions", "truncate", "clone", "produce"):
        assert name in text
