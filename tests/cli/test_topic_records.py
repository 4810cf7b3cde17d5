"""`millstream topic produce|consume|tail` as a person meets them: lines on the screen, progress, bad input."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from millstream.testing import running_server
from support.topics import Commands


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    with running_server() as server:
        yield Commands(server.bootstrap_servers)


def test_a_record_as_people_read_it(commands: Commands) -> None:
    topic = commands.topic()
    now = 1700000000123
    commands("topic", "alter", topic, "--config", "retention.ms=-1")
    commands.fill(topic, b'{"n": 1}', key=b"ann", headers=[("trace", b"abc"), ("none", None)], timestamp=now)
    commands.fill(topic, None, timestamp=now)
    commands.fill(topic, b"\x1b[31mred\xff\x07", key=b"", timestamp=now)
    assert commands("topic", "consume", topic).stdout.splitlines() == [
        '0:0      2023-11-14T22:13:20.123Z  ann  {"n": 1}  [trace=abc none=(null)]',
        "0:1      2023-11-14T22:13:20.123Z  -  (null)",
        '0:2      2023-11-14T22:13:20.123Z  ""  \\x1b[31mred\\xff\\x07',
    ]
    on_terminal = commands("topic", "consume", topic, terminal=True)
    assert "\x1b[31m" not in on_terminal.stdout
    assert "\x07" not in on_terminal.stdout
    assert on_terminal.stderr == "millstream: 3 records\n"
    assert commands("topic", "consume", topic).stderr == ""
    filtered = commands("topic", "consume", topic, "--filter", "key == 'ann'", terminal=True)
    assert filtered.stderr == "millstream: 1 record of 3 read\n"


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ("{partition}/{offset} {key} {value}", '0/0 k {"a": {"b": [5, null]}}\n'),
        (r"{key}\t{value.a.b.0}\n", "k\t5\n"),
        ("{topic}", "TOPIC\n"),
        ("{timestamp} {time}", "1700000000123 2023-11-14T22:13:20.123Z\n"),
        ("{headers}|{headers.h}|{headers.none}|{headers.missing}", "h=1,none=|1||\n"),
        ("{value.a}", '{"b": [5, null]}\n'),
        ("{value.a.b.1}|{value.nothing.here}", "|\n"),
        ("{size}", "24\n"),
        ("{{{key}}}", "{k}\n"),
        ("[{key:>4}][{key:<4}][{key:^5}]", "[   k][k   ][  k  ]\n"),
    ],
)
def test_templates(commands: Commands, template: str, line: str) -> None:
    topic = commands.topic(1, "--config", "retention.ms=-1")
    headers = [("h", b"1"), ("none", None)]
    commands.fill(topic, b'{"a": {"b": [5, null]}}', key=b"k", headers=headers, timestamp=1700000000123)
    assert commands("topic", "consume", topic, "--format", template).stdout == line.replace("TOPIC", topic)


def test_raw_is_exact_and_templates_are_safe_on_a_terminal(commands: Commands) -> None:
    topic = commands.topic()
    commands.fill(topic, b"\x1b[1mx")
    assert commands("topic", "consume", topic, "--format", "raw").stdout == "\x1b[1mx\n"
    assert commands("topic", "consume", topic, "--format", "{value}").stdout == "\x1b[1mx\n"
    assert commands("topic", "consume", topic, "--format", "{value}", terminal=True).stdout == "\\x1b[1mx\n"


def test_produce_says_what_it_did(commands: Commands) -> None:
    topic = commands.topic()
    said = commands("topic", "produce", topic, "--acks", "1", input="a\nb\n").stdout
    assert re.fullmatch(rf"produced 2 records to partition 0 of {topic}: 2 bytes in \d+\.\d\d s, [\d,]+/s\n", said)
    nothing = commands("topic", "produce", topic, "--acks", "1", input="").stdout
    assert nothing.startswith(f"produced 0 records of {topic}: 0 bytes")


def test_produce_on_a_terminal_shows_how_to_end_and_progress(commands: Commands) -> None:
    topic = commands.topic()
    errors = commands("topic", "produce", topic, "--acks", "1", input="a\nb\n", terminal=True).stderr
    assert "Ctrl-D ends" in errors
    assert "produced 1 records" in errors


def test_an_empty_topic_ends_at_once(commands: Commands) -> None:
    topic = commands.topic(3)
    assert commands("topic", "consume", topic, "--json").stdout == ""
    assert commands("topic", "consume", topic, "--group", "empty-readers").stdout == ""


def test_a_dash_is_standard_input(commands: Commands) -> None:
    topic = commands.topic()
    commands("topic", "produce", topic, "--file", "-", "--acks", "1", input="a\n")
    assert commands("topic", "consume", topic, "--format", "raw").stdout == "a\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--format", "yaml"], ["--format", "'yaml'", "text, json"]),
        (["--partitioner", "murmur3"], ["--partitioner", "did you mean murmur2"]),
        (["--acks", "2"], ["--acks", "all, -1, 1, 0"]),
        (["--compression", "zst"], ["--compression", "did you mean zstd?"]),
        (["--rate", "0"], ["--rate"]),
        (["--rate", "fast"], ["--rate", "number"]),
        (["--timeout", "0"], ["--timeout"]),
        (["--key-separator", ""], ["--key-separator", "empty"]),
        (["--headers-separator", ""], ["--headers-separator", "empty"]),
        (["--header", "trace"], ["--header", "'trace'", "name=value"]),
        (["--key", "k", "--key-separator", ":"], ["--key", "--key-separator"]),
        (["--format", "json", "--key-separator", ":"], ["--key-separator", "--format text"]),
        (["--partition", "-1"], ["--partition"]),
        (["--partition", "5"], ["--partition 5", "partitions 0 to 0"]),
        (["--file", "not-there"], ["--file", "not-there", "No such file"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_bad_input_of_produce(commands: Commands, arguments: list[str], words: list[str]) -> None:
    topic = commands.topic()
    message = commands.refused(2, "topic", "produce", topic, *arguments, input="x\n")
    for word in words:
        assert word in message
    assert commands("topic", "consume", topic).stdout == ""


def test_a_folder_is_not_a_file(commands: Commands, tmp_path: Path) -> None:
    assert "--file" in commands.refused(2, "topic", "produce", commands.topic(), "--file", str(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--from", "yesterday"], ["--from", "'yesterday'", "beginning"]),
        (["--partition", "x"], ["--partition", "'x'"]),
        (["--partition", "9"], ["--partition", "no partition 9"]),
        (["--count", "0"], ["--count"]),
        (["--filter", "value.x = 3"], ["--filter", "write `==`", "        ^"]),
        (["--format", "xml"], ["--format", "'xml'", "json", "raw", "{partition}"]),
        (["--format", "{kee}"], ["--format", "{kee}", "did you mean key?"]),
        (["--format", "{key"], ["--format", "not a template"]),
        (["--format", "{key!r:x}"], ["--format", "'x'", "width"]),
        (["--format", "raw", "--json"], ["--json", "--format raw"]),
        (["--isolation", "committed"], ["--isolation", "did you mean read_committed?"]),
        (["--group", "g", "--partition", "0"], ["--partition", "--group"]),
        (["--group", "g", "--from", "5"], ["--from", "group seek"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_bad_input_of_consume(commands: Commands, arguments: list[str], words: list[str]) -> None:
    message = commands.refused(2, "topic", "consume", commands.topic(), *arguments)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--lines", "-1"], "--lines"),
        (["--filter", "x"], "--filter"),
        (["--format", "x"], "--format"),
        (["--isolation", "x"], "--isolation"),
        (["--partition", "7"], "--partition"),
        (["--count", "0"], "--count"),
    ],
)
def test_bad_input_of_tail(commands: Commands, arguments: list[str], word: str) -> None:
    assert word in commands.refused(2, "topic", "tail", commands.topic(), *arguments)
