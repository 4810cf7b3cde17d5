"""`millstream graduate` from a Millstream server to the server under test, Apache Kafka among them."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from millstream.testing import running_server
from support import graduation as data
from support.cli import COMMAND, run, succeed
from support.cluster import Cluster
from support.settings import SETTINGS


@pytest.fixture(scope="module")
def source() -> Iterator[str]:
    with running_server(SETTINGS) as server:
        yield server.bootstrap_servers


@pytest.fixture
def move(source: str, cluster: Cluster, tmp_path: Path) -> list[str]:
    """The command, but for its topics."""
    return ["graduate", "--from", source, "--to", cluster.bootstrap_servers, "--state", str(tmp_path / "state.json")]


def same(source: str, target: str, topic: str, partitions: int = 1) -> None:
    """Both clusters give consumers the same, and the target gives nothing else to those who read everything."""
    for partition in range(partitions):
        records = data.read(source, topic, partition)
        assert data.read(target, topic, partition) == records
        assert data.read(target, topic, partition, isolation="read_uncommitted") == records
        assert data.bounds(target, topic, partition)[1] == data.bounds(source, topic, partition)[1]


@pytest.mark.parametrize("codec", data.CODECS)
def test_records_of_every_shape_and_codec(move: list[str], source: str, cluster: Cluster, codec: str) -> None:
    topic = f"shapes-{codec}"
    data.make_topic(source, topic, 3)
    data.fill(source, topic, 3000, codec=codec, partitions=3)
    plan = succeed(*move, "--topic", topic, "--json").json
    assert plan["topics"][0]["codecs"] == [codec] * 3
    assert plan["topics"][0]["to_copy"] == 3000
    outcome = succeed(*move, "--topic", topic, "--execute", "--json").json["outcome"]
    assert outcome["records"] == 3000
    assert outcome["placeholders"] == 0
    assert [found["target"]["records"] for found in outcome["comparisons"]] == [1000] * 3
    same(source, cluster.bootstrap_servers, topic, 3)


def test_codecs_are_kept(move: list[str], source: str, cluster: Cluster) -> None:
    data.make_topic(source, "kept-codec", 1)
    data.fill(source, "kept-codec", 2000, codec="zstd")
    succeed(*move, "--topic", "kept-codec", "--execute")
    assert data.codec_of(cluster.bootstrap_servers, "kept-codec") == "zstd"


def test_a_topic_whose_beginning_was_deleted(move: list[str], source: str, cluster: Cluster) -> None:
    data.make_topic(source, "cut", 2)
    data.fill(source, "cut", 2000, partitions=2)
    data.delete_before(source, "cut", 700, 0)
    data.delete_before(source, "cut", 1000, 1)
    succeed(*move, "--topic", "cut", "--execute")
    assert data.bounds(cluster.bootstrap_servers, "cut", 0) == (700, 1000)
    assert data.bounds(cluster.bootstrap_servers, "cut", 1) == (1000, 1000)
    same(source, cluster.bootstrap_servers, "cut", 2)


def test_transactions_leave_their_committed_records(move: list[str], source: str, cluster: Cluster) -> None:
    data.make_topic(source, "payments", 1)
    for index in range(12):
        data.transact(source, "payments", "payer", [b"%d" % index] * (index + 1), commit=index % 3 > 0)
    plan = succeed(*move, "--topic", "payments")
    assert "transactional state stays" in plan.stdout
    outcome = succeed(*move, "--topic", "payments", "--execute", "--json").json["outcome"]
    assert outcome["records"] == sum(index + 1 for index in range(12) if index % 3 > 0)
    assert outcome["placeholders"] > 0
    same(source, cluster.bootstrap_servers, "payments")


def test_an_open_transaction_is_waited_for(move: list[str], source: str, cluster: Cluster) -> None:
    data.make_topic(source, "unfinished", 1)
    data.fill(source, "unfinished", 10)
    with data.open_transaction(source, "unfinished", "waiter", [b"a", b"b"]):
        data.fill(source, "unfinished", 5)
        result = succeed(*move, "--topic", "unfinished", "--execute")
        assert "only what lies before the first open one is moved" in " ".join(result.stdout.split())
        assert data.bounds(cluster.bootstrap_servers, "unfinished") == (0, 10)
    succeed(*move, "--topic", "unfinished", "--execute")
    same(source, cluster.bootstrap_servers, "unfinished")
    assert len(data.read(cluster.bootstrap_servers, "unfinished")) == 17


def test_a_compacted_topic(move: list[str], source: str, cluster: Cluster) -> None:
    data.make_topic(source, "state", 1, cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01")
    data.fill_compacted(source, "state", keys=20, rounds=15)
    offsets = [record.offset for record in data.read(source, "state")]
    outcome = succeed(*move, "--topic", "state", "--execute", "--json").json["outcome"]
    assert outcome["comparisons"][0]["target"]["first"] == offsets[0]
    records = {record.offset: record for record in data.read(cluster.bootstrap_servers, "state")}
    for record in data.read(source, "state"):  # the source may have compacted more since
        assert records[record.offset] == record
    configs = data.topic_configs(cluster.bootstrap_servers, "state")
    assert configs["cleanup.policy"] == "compact"
    assert "retention.ms" not in configs


def test_placeholders_can_be_records(move: list[str], source: str, cluster: Cluster) -> None:
    data.make_topic(source, "visible", 1)
    data.transact(source, "visible", "v", [b"1"], commit=True)
    data.transact(source, "visible", "v", [b"2"], commit=True)
    succeed(*move, "--topic", "visible", "--placeholders", "records", "--execute")
    found = data.read(cluster.bootstrap_servers, "visible")
    assert [record.key for record in found] == [None, b"millstream.filler", None, b"millstream.filler"]
    assert [record for record in found if record.key is None] == data.read(source, "visible")
    assert found[1].value is None
    assert found[1].headers == (("millstream.filler", b""),)


def test_configs_go_with_their_topic(move: list[str], source: str, cluster: Cluster) -> None:
    data.make_topic(
        source, "configured", 2, retention_ms="-1", max_message_bytes="3000000", message_timestamp_type="LogAppendTime"
    )
    data.fill(source, "configured", 20)
    succeed(*move, "--topic", "configured", "--execute")
    assert data.topic_configs(cluster.bootstrap_servers, "configured") == {
        "retention.ms": "-1",
        "max.message.bytes": "3000000",
        "message.timestamp.type": "LogAppendTime",
    }
    same(source, cluster.bootstrap_servers, "configured", 2)


def test_big_records(move: list[str], source: str, cluster: Cluster) -> None:
    data.make_topic(source, "big", 1, max_message_bytes="6000000")
    data.fill_big(source, "big", [5_000_000, 10, 2_000_000])
    succeed(*move, "--topic", "big", "--execute")
    same(source, cluster.bootstrap_servers, "big")


def test_groups_in_mid_stream(move: list[str], source: str, cluster: Cluster) -> None:
    data.make_topic(source, "read-half", 2)
    data.fill(source, "read-half", 1000, partitions=2)
    data.delete_before(source, "read-half", 100, 0)
    data.commit(source, "half-readers", {("read-half", 0): 250, ("read-half", 1): 500}, "note")
    data.commit(source, "late-readers", {("read-half", 0): 3})
    outcome = succeed(*move, "--topic", "read-half", "--execute", "--json").json["outcome"]
    assert outcome["groups"] == [
        {"group": "half-readers", "partitions": 2, "adjusted": 0},
        {"group": "late-readers", "partitions": 1, "adjusted": 1},
    ]
    address = cluster.bootstrap_servers
    assert data.positions(address, "half-readers") == {("read-half", 0): (250, "note"), ("read-half", 1): (500, "note")}
    assert data.positions(address, "late-readers") == {("read-half", 0): (100, "")}

    data.commit(source, "half-readers", {("read-half", 0): 260})  # goes on at the source: the next run follows
    succeed(*move, "--topic", "read-half", "--execute")
    assert data.positions(address, "half-readers")["read-half", 0] == (260, "")

    data.commit(address, "half-readers", {("read-half", 0): 300})  # goes on at the target: it is not set back
    result = run(*move, "--topic", "read-half", "--execute")
    assert result.exit_code == 1
    assert "not the positions of half-readers" in result.stderr
    assert data.positions(address, "half-readers")["read-half", 0] == (300, "")


def test_a_group_with_members_is_not_moved_unless_forced(move: list[str], source: str, cluster: Cluster) -> None:
    data.make_topic(source, "busy", 1)
    data.fill(source, "busy", 30)
    with data.member(source, "busy-readers", "busy"):
        result = run(*move, "--topic", "busy", "--execute")
        assert result.exit_code == 1
        assert "has members at the source" in " ".join(result.stdout.split())
        same(source, cluster.bootstrap_servers, "busy")
        assert data.positions(cluster.bootstrap_servers, "busy-readers") == {}
        succeed(*move, "--topic", "busy", "--execute", "--force")
    assert data.positions(cluster.bootstrap_servers, "busy-readers") == {("busy", 0): (30, "")}


def test_a_killed_move_goes_on_without_duplicates(move: list[str], source: str, cluster: Cluster) -> None:
    count, partitions = 120_000, 2
    data.make_topic(source, "long", partitions)
    data.fill(source, "long", count, codec="lz4", partitions=partitions, size=200)
    data.delete_before(source, "long", 500, 0)
    data.make_topic(source, "long-txn", 1)
    for index in range(5):
        data.transact(source, "long-txn", "long", [b"%d" % index] * 3, commit=index != 2)
    command = [*COMMAND, *move, "--topic", "long*", "--execute"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        data.wait_for_records(cluster.bootstrap_servers, "long", 1000)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    ends = [data.bounds(cluster.bootstrap_servers, "long", index)[1] for index in range(partitions)]
    assert 0 < sum(ends) < count
    plan = succeed(*move, "--topic", "long*", "--json").json
    assert plan["topics"][0]["state"] == "resume"
    outcome = succeed(*move, "--topic", "long*", "--execute", "--json").json["outcome"]
    assert 0 < outcome["records"] < count
    assert all(found["equal"] for found in outcome["comparisons"])
    same(source, cluster.bootstrap_servers, "long", partitions)
    same(source, cluster.bootstrap_servers, "long-txn")


def test_interrupt_is_clean_and_can_be_taken_up(move: list[str], source: str, cluster: Cluster) -> None:
    data.make_topic(source, "stopped", 1)
    data.fill(source, "stopped", 60_000, size=200)
    command = [*COMMAND, *move, "--topic", "stopped", "--execute"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "COLUMNS": "100"}
    )
    data.wait_for_records(cluster.bootstrap_servers, "stopped", 1000)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"Traceback" not in errors
    assert b"the same command goes on where it was" in errors
    succeed(*move, "--topic", "stopped", "--execute")
    same(source, cluster.bootstrap_servers, "stopped")


def test_what_arrives_later_is_said_and_the_next_run_takes_it(move: list[str], source: str, cluster: Cluster) -> None:
    data.make_topic(source, "growing", 1)
    data.fill(source, "growing", 100)
    succeed(*move, "--topic", "growing", "--execute")
    assert succeed(*move, "--topic", "growing", "--json").json["topics"][0]["state"] == "moved"
    data.fill(source, "growing", 50)
    outcome = succeed(*move, "--topic", "growing", "--execute", "--follow", "--json").json["outcome"]
    assert outcome["records"] == 50
    assert outcome["arrived_later"] == 0
    same(source, cluster.bootstrap_servers, "growing")


def test_follow_catches_up_with_producers_at_work(move: list[str], source: str, cluster: Cluster) -> None:
    data.make_topic(source, "live", 1)
    data.fill(source, "live", 20_000)
    with data.producing(source, "live"):
        succeed(*move, "--topic", "live", "--execute", "--follow")
    moved = data.read(cluster.bootstrap_servers, "live")
    assert len(moved) >= 20_000
    assert data.read(source, "live")[: len(moved)] == moved


def test_a_topic_with_other_data_at_the_target_blocks(move: list[str], source: str, cluster: Cluster) -> None:
    for address in (source, cluster.bootstrap_servers):
        data.make_topic(address, "taken", 1)
        data.fill(address, "taken", 10)
    result = run(*move, "--topic", "taken", "--execute")
    assert result.exit_code == 1
    assert "topic taken exists at the target and holds records that are not from this move" in result.stdout
    assert "--exclude taken" in result.stdout
    assert data.bounds(cluster.bootstrap_servers, "taken") == (0, 10)


def test_partitions_and_replication_that_do_not_fit_block(move: list[str], source: str, cluster: Cluster) -> None:
    data.make_topic(source, "narrow", 3)
    data.make_topic(cluster.bootstrap_servers, "narrow", 2)
    result = run(*move, "--topic", "narrow")
    assert result.exit_code == 1
    assert "has 3 partitions at the source and 2 at the target" in result.stdout
    data.make_topic(source, "copies", 1)
    result = run(*move, "--topic", "copies", "--replication-factor", "3")
    assert result.exit_code == 1
    assert "--replication-factor with a number" in " ".join(result.stdout.split())


def test_someone_else_writing_to_the_target_is_noticed(move: list[str], source: str, cluster: Cluster) -> None:
    data.make_topic(source, "shared", 1)
    data.fill(source, "shared", 100)
    succeed(*move, "--topic", "shared", "--execute")
    data.fill(cluster.bootstrap_servers, "shared", 1)
    data.fill(source, "shared", 100)
    result = run(*move, "--topic", "shared", "--execute")
    assert result.exit_code == 1
    assert "others have written to it at the target since" in result.stdout
