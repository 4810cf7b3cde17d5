"""`millstream topic produce|consume|tail` on any cluster."""

import json
import signal
import subprocess
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka.partitioner.default import murmur2

from support.cli import COMMAND
from support.cluster import unique
from support.topics import Commands


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_become_records_and_lines_again(millstream_command: Commands, codec: str) -> None:
    topic = millstream_command.topic()
    lines = "first\n\nthird with ünïcode\r\nlast without end"
    result = millstream_command.json("topic", "produce", topic, "--compression", codec, input=lines)
    assert (result["records"], result["failed"], result["error"]) == (4, 0, None)
    assert result["partitions"] == [{"partition": 0, "records": 4, "first_offset": 0, "last_offset": 3}]
    values = millstream_command("topic", "consume", topic, "--format", "raw").stdout
    assert values == "first\n\nthird with ünïcode\nlast without end\n"


@pytest.mark.parametrize("acks", ["all", "-1", "1", "0"])
def test_acks(millstream_command: Commands, acks: str) -> None:
    topic = millstream_command.topic()
    assert millstream_command.json("topic", "produce", topic, "--acks", acks, input="x\n")["records"] == 1
    assert millstream_command("topic", "consume", topic, "--format", "raw", "--count", "1", "--follow").stdout == "x\n"


def test_keys_headers_tombstones_and_a_file(millstream_command: Commands, tmp_path: Path) -> None:
    topic = millstream_command.topic()
    file = tmp_path / "lines"
    file.write_text("h=1,g=\tk1\tv1\n\tk2\tNULL\n")
    millstream_command(
        "topic", "produce", topic, "--file", str(file), "--headers-separator", r"\t", "--key-separator", r"\t",
        "--header", "all=yes", "--null-value-marker", "NULL",
    )  # fmt: skip
    first, second = millstream_command("topic", "consume", topic, "--json").json_lines
    assert (first["key"], first["value"]) == ("k1", "v1")
    assert first["headers"] == [{"key": "all", "value": "yes"}, {"key": "h", "value": "1"}, {"key": "g", "value": ""}]
    assert (second["key"], second["value"], second["headers"]) == ("k2", None, [{"key": "all", "value": "yes"}])


def test_json_in_and_json_out_are_the_same(millstream_command: Commands) -> None:
    topic = millstream_command.lasting_topic(3)
    records = [
        {"key": "a", "value": "text", "headers": {"h": "1"}, "partition": 2, "timestamp": 1700000000000},
        {"value": {"n": 1}, "partition": 2, "timestamp": "2023-11-14T22:13:21Z"},
        {"key": None, "value": None, "partition": 2, "timestamp": 1700000000002},
        {"key": "/w==", "key_encoding": "base64", "value": "", "partition": 2, "timestamp": 1700000000003},
    ]
    lines = "\n".join(map(json.dumps, records)) + "\n\n"
    millstream_command("topic", "produce", topic, "--format", "json", input=lines)
    found = millstream_command("topic", "consume", topic, "--json")
    assert [record["value"] for record in found.json_lines] == ["text", '{"n":1}', None, ""]
    assert [record["timestamp"] for record in found.json_lines][:2] == [1700000000000, 1700000001000]
    assert found.json_lines[3]["key"] == "/w=="
    copy = millstream_command.lasting_topic(3)
    millstream_command("topic", "produce", copy, "--format", "json", input=found.stdout)
    again = millstream_command("topic", "consume", copy, "--format", "json").json_lines
    assert [{**record, "topic": topic} for record in again] == found.json_lines


def test_keys_land_where_java_puts_them(millstream_command: Commands) -> None:
    topic = millstream_command.topic(10)
    millstream_command("topic", "produce", topic, "--key-separator", ":", input="21:x\nabc:x\nuser-42:x\n")
    found = millstream_command("topic", "consume", topic, "--json").json_lines
    keys = ("21", "abc", "user-42")
    java = {key: (murmur2(key.encode()) & 0x7FFFFFFF) % 10 for key in keys}
    assert {record["key"]: record["partition"] for record in found} == java


@pytest.mark.parametrize(
    "partitioner", ["murmur2", "consistent", "consistent_random", "fnv1a", "fnv1a_random", "random"]
)
def test_every_partitioner_delivers(millstream_command: Commands, partitioner: str) -> None:
    topic = millstream_command.topic(4)
    lines = "".join(f"key{number % 3}:{number}\n" for number in range(30))
    arguments = ["--partitioner", partitioner, "--key-separator", ":", "--acks", "1"]
    result = millstream_command.json("topic", "produce", topic, *arguments, input=lines)
    assert result["records"] == sum(part["records"] for part in result["partitions"]) == 30
    if partitioner != "random":
        found = millstream_command("topic", "consume", topic, "--json").json_lines
        assert len({(record["key"], record["partition"]) for record in found}) == 3


def test_one_key_one_partition_and_a_rate(millstream_command: Commands) -> None:
    topic = millstream_command.topic(4)
    arguments = ["--key", "k", "--partition", "3", "--rate", "100", "--acks", "1"]
    result = millstream_command.json("topic", "produce", topic, *arguments, input="x\n" * 21)
    assert result["partitions"] == [{"partition": 3, "records": 21, "first_offset": 0, "last_offset": 20}]
    assert result["seconds"] >= 0.2
    assert "partitions 0 to 3" in millstream_command.refused(2, "topic", "produce", topic, "--partition", "4")


def test_a_line_that_cannot_be_read_is_named_and_the_ones_before_are_delivered(millstream_command: Commands) -> None:
    topic = millstream_command.topic()
    for arguments, lines, word in (
        (["--key-separator", ":"], "a:b\nc\n", "line 2: it has no ':' between key and value"),
        (["--headers-separator", "|"], "a=1|b\nc\n", "line 2"),
        (["--headers-separator", "|"], "a=1|b\nc|d\n", "name=value"),
        (["--format", "json"], '{"value": 1}\n{"value"\n', "line 2: it is not JSON"),
        (["--format", "json"], '{"value": 1}\n[]\n', "JSON object"),
        (["--format", "json"], '{"value": 1}\n{"valu": 2}\n', "did you mean value?"),
        (["--format", "json"], '{"value": 1}\n{"key": "k"}\n', '"value": null'),
        (["--format", "json"], '{"value": 1}\n{"value": 1, "partition": 7}\n', "partitions 0 to 0"),
        (["--format", "json"], '{"value": 1}\n{"value": 1, "partition": "x"}\n', "partition"),
        (["--format", "json"], '{"value": 1}\n{"value": 1, "timestamp": "soon"}\n', "soon"),
        (["--format", "json"], '{"value": 1}\n{"value": 1, "headers": 3}\n', "headers"),
        (["--format", "json"], '{"value": 1}\n{"value": "?", "value_encoding": "base64"}\n', "base64"),
        (["--format", "json"], '{"value": 1}\n{"value": "?", "value_encoding": "rot13"}\n', "rot13"),
    ):
        result = millstream_command.run("topic", "produce", topic, *arguments, "--acks", "1", input=lines)
        assert result.exit_code == 2, lines
        assert word in result.stderr
        assert "1 records before it were delivered" in result.stderr
        assert "produced 1 record " in result.stdout


def test_a_record_that_the_cluster_refuses_is_a_failure_with_a_count(millstream_command: Commands) -> None:
    topic = millstream_command.topic(1, "--config", "max.message.bytes=1000")
    lines = "small\n" + "x" * 5000 + "\n"
    # apart in time, so that they are not one batch, which would be refused as a whole
    result = millstream_command.run("topic", "produce", topic, "--rate", "4", "--acks", "1", input=lines)
    assert result.exit_code == 1
    assert "1 not delivered, 1 delivered" in result.stderr
    assert "produced 1 record " in result.stdout


def test_ctrl_c_while_producing_delivers_what_was_read(millstream_command: Commands) -> None:
    topic = millstream_command.topic()
    process = subprocess.Popen(
        [*COMMAND, "topic", "produce", topic, "--bootstrap", millstream_command.bootstrap],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write("a\n")
    process.stdin.flush()
    follow = ["topic", "consume", topic, "--follow", "--count", "1", "--format", "raw"]
    assert millstream_command(*follow).stdout == "a\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    said, errors = process.communicate()
    assert said.startswith(f"produced 1 record to partition 0 of {topic}")
    assert errors == ""


def test_where_to_begin(millstream_command: Commands) -> None:
    topic = millstream_command.lasting_topic()
    for number in range(6):
        millstream_command.fill(topic, b"%d" % number, timestamp=1700000000000 + number * 1000)

    def values(*arguments: str) -> str:
        return millstream_command("topic", "consume", topic, "--format", "raw", *arguments).stdout.replace("\n", "")

    assert values() == values("--from", "beginning") == values("--from", "earliest") == "012345"
    assert values("--from", "end") == values("--from", "99") == ""
    assert values("--from", "4") == "45"
    assert values("--from", "-2") == "45"
    assert values("--from", "-100") == "012345"
    assert values("--from", "@1700000003000") == values("--from", "1700000003000") == "345"
    assert values("--from", "2023-11-14T22:13:23.500+00:00") == "45"
    assert values("--from", "1h") == ""
    assert values("--count", "2") == "01"
    assert values("--from", "1", "--count", "2") == "12"


def test_chosen_partitions(millstream_command: Commands) -> None:
    topic = millstream_command.topic(3)
    for partition in range(3):
        millstream_command.fill(topic, b"p%d" % partition, partition=partition)

    def values(*arguments: str) -> set[str]:
        return set(millstream_command("topic", "consume", topic, "--format", "raw", *arguments).stdout.split())

    assert values("--partition", "0,2") == values("--partition", "0", "--partition", "2") == {"p0", "p2"}
    assert "0 to 2" in millstream_command.refused(2, "topic", "consume", topic, "--partition", "3")


def test_a_filter_and_a_template(millstream_command: Commands) -> None:
    topic = millstream_command.topic()
    for number in range(10):
        millstream_command.fill(topic, json.dumps({"id": number % 4, "user": {"name": f"u{number}"}}), key="k")
    arguments = ["--filter", "value.id == 3 and key != null", "--format", r"{offset}\t{key}={value.user.name}"]
    assert millstream_command("topic", "consume", topic, *arguments).stdout == "3\tk=u3\n7\tk=u7\n"
    first = millstream_command("topic", "consume", topic, *arguments, "--count", "1").stdout
    assert first == "3\tk=u3\n"


def test_the_end_is_found_behind_markers_and_aborted_records(millstream_command: Commands) -> None:
    topic = millstream_command.topic()
    producer = Producer({"bootstrap.servers": millstream_command.bootstrap, "transactional.id": unique("tx")})
    producer.init_transactions(30)
    for value, commit in ((b"aborted", False), (b"kept", True)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(30)
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    consume = ["topic", "consume", topic, "--format", "raw"]
    assert millstream_command(*consume).stdout == "aborted\nkept\n"
    assert millstream_command(*consume, "--isolation", "read_committed").stdout == "kept\n"
    target = unique("copy")
    assert millstream_command.json("topic", "clone", topic, target, "--data")["records"] == 1


def test_a_group_goes_on_where_it_stopped(millstream_command: Commands) -> None:
    topic, group = millstream_command.topic(2), unique("group")
    for partition in (0, 1):
        millstream_command.fill(topic, b"a", b"b", b"c", partition=partition)
    consume = ["topic", "consume", topic, "--group", group, "--format", "raw"]
    taken = millstream_command(*consume, "--count", "4").stdout.split()
    lag = millstream_command.json("group", "lag", group)[0]
    assert (len(taken), lag["lag"]) in ((4, 2), (4, 0))  # a partition with nothing taken has no position yet
    taken += millstream_command(*consume).stdout.split()
    assert sorted(taken) == ["a", "a", "b", "b", "c", "c"]
    assert millstream_command.json("group", "lag", group)[0]["lag"] == 0
    assert millstream_command(*consume).stdout == ""
    new = ["topic", "consume", topic, "--group", unique("group"), "--from", "end"]
    assert millstream_command(*new).stdout == ""


def test_follow_gets_what_comes_and_ctrl_c_is_a_good_end(millstream_command: Commands) -> None:
    topic = millstream_command.topic()
    millstream_command.fill(topic, b"old")
    process = subprocess.Popen(
        [
            *COMMAND,
            "topic",
            "consume",
            topic,
            "--follow",
            "--format",
            "raw",
            "--bootstrap",
            millstream_command.bootstrap,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "old\n"
    millstream_command.fill(topic, b"new")
    assert process.stdout.readline() == "new\n"
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=30)
    assert (process.returncode, rest, errors) == (0, "", "millstream: 2 records\n")


def test_tail_shows_the_last_ones_in_order_of_time_then_new_ones(millstream_command: Commands) -> None:
    topic = millstream_command.lasting_topic(2)
    for number in range(6):
        millstream_command.fill(topic, b"%d" % number, partition=number % 2, timestamp=1700000000000 + number)
    process = subprocess.Popen(
        [*COMMAND, "topic", "tail", topic, "-n", "3", "--format", "raw", "--bootstrap", millstream_command.bootstrap],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(3)] == ["3\n", "4\n", "5\n"]
    millstream_command.fill(topic, b"new")
    assert process.stdout.readline() == "new\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in errors
    last = millstream_command("topic", "tail", topic, "--count", "2", "--filter", "partition == 1", "--json").json_lines
    assert [record["value"] for record in last] == ["1", "3"]


def test_a_closed_pipe_ends_consume_quietly(millstream_command: Commands) -> None:
    topic = millstream_command.topic()
    millstream_command.fill(topic, *[b"x" * 1000] * 500)
    command = " ".join([*COMMAND, "topic", "consume", topic, "--bootstrap", millstream_command.bootstrap])
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -n 1"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.count("\n") == 1
    assert (done.returncode, done.stderr) == (0, "")
