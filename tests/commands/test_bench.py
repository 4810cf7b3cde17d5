"""`millstream bench` against the server under test."""

import signal
import subprocess
import time

import pytest

from support import graduation as data
from support.cli import COMMAND, refused, run, succeed
from support.cluster import Cluster


def test_produce_measures_and_leaves_nothing_behind(cluster: Cluster) -> None:
    address = cluster.bootstrap_servers
    arguments = ("--records", "2000", "--size", "100B", "--clients", "2", "--partitions", "2", "--compression", "lz4")
    found = succeed("bench", "produce", "--bootstrap", address, *arguments, "--json").json
    assert found["records"] == 2000
    assert found["bytes"] == 200_000
    assert found["clients"] == 2
    assert found["records_per_second"] == pytest.approx(2000 / found["seconds"], rel=0.01)
    times = found["acknowledged_ms"]
    assert 0 < times["p50"] <= times["p95"] <= times["p99"] <= times["max"]
    assert found["topic"] not in data.topics(address)


def test_produce_to_a_topic_keeps_it(cluster: Cluster) -> None:
    address = cluster.bootstrap_servers
    data.make_topic(address, "bench-kept", 1)
    arguments = ("--records", "500", "--topic", "bench-kept", "--keys", "3", "--acks", "1")
    assert "acknowledged" in succeed("bench", "produce", "--bootstrap", address, *arguments).stdout
    records = data.read(address, "bench-kept")
    assert len(records) == 550  # a tenth more to warm up
    assert {record.key for record in records} == {b"key-0", b"key-1", b"key-2"}
    assert succeed("bench", "consume", "--bootstrap", address, "--topic", "bench-kept", "--json").json["records"] == 550


def test_rate_and_time_bound_it(cluster: Cluster) -> None:
    arguments = ("--seconds", "1", "--rate", "200", "--json")
    found = succeed("bench", "produce", "--bootstrap", cluster.bootstrap_servers, *arguments).json
    assert 0 < found["records"] <= 201


def test_consume_reads_all_that_was_filled(cluster: Cluster) -> None:
    arguments = ("--records", "3000", "--size", "50B", "--clients", "2", "--partitions", "3", "--json")
    found = succeed("bench", "consume", "--bootstrap", cluster.bootstrap_servers, *arguments).json
    assert found["records"] == 3000
    assert found["bytes"] == 150_000
    assert found["acknowledged_ms"] is None


def test_latency_from_producer_to_consumer(cluster: Cluster) -> None:
    found = succeed("bench", "latency", "--bootstrap", cluster.bootstrap_servers, "--records", "50", "--json").json
    assert found["records"] == 50
    assert 0 < found["end_to_end_ms"]["p50"] <= found["end_to_end_ms"]["max"]
    assert found["acknowledged_ms"]["p50"] > 0


def test_interrupt_shows_the_figures_and_cleans_up(cluster: Cluster) -> None:
    address = cluster.bootstrap_servers
    command = [*COMMAND, "bench", "produce", "--bootstrap", address, "--seconds", "600", "--rate", "1000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    topic = _bench_topic(address)
    data.wait_for_records(address, topic, 10_200)  # warm, and at work
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "records/s" in output
    assert "Traceback" not in errors
    assert topic not in data.topics(address)


def _bench_topic(address: str) -> str:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for name in data.topics(address):
            if name.startswith("millstream-bench-"):
                return name
        time.sleep(0.05)
    raise AssertionError("there was no topic")


@pytest.mark.parametrize(
    ("code", "arguments", "said"),
    [
        (2, ("produce", "--acks", "2"), "--acks: '2' is none of 0, 1, all"),
        (2, ("produce", "--compression", "zip"), "--compression: 'zip' is none of none, gzip"),
        (2, ("latency", "--size", "many"), "--size: 'many' is not a size; write for example 100B"),
    ],
)
def test_bad_input(cluster: Cluster, code: int, arguments: tuple[str, ...], said: str) -> None:
    assert said in refused(code, "bench", *arguments, "--bootstrap", cluster.bootstrap_servers)


def test_a_topic_that_is_not_there(cluster: Cluster) -> None:
    result = run("bench", "produce", "--topic", "no-such-topic", "--bootstrap", cluster.bootstrap_servers)
    assert result.exit_code == 4
    assert "--topic: there is no topic no-such-topic" in result.stderr
