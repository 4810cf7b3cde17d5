"""`millstream serve` as a person meets it: what it prints, how it ends, what it says when it cannot start."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from millstream.cli.serve import default_data
from support.millstream_server import MillstreamServer


def serve(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A server that is expected not to start."""
    return subprocess.run(
        [sys.executable, "-m", "millstream", "serve", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )


def test_one_line_when_ready_and_exit_0_on_sigterm(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "millstream", "serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "data")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("listening on 127.0.0.1:")
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=30)
    assert rest == ""
    assert process.returncode == 0


def test_ctrl_c_ends_it_cleanly(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "millstream", "serve", "--listen", "127.0.0.1:0", "--ephemeral"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    assert len(list(tmp_path.iterdir())) == 1
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


def test_a_second_server_on_the_same_data_folder_is_refused_and_the_first_unharmed(tmp_path: Path) -> None:
    with MillstreamServer(folder=tmp_path) as first:
        second = serve("--listen", "127.0.0.1:0", "--data", str(first.data_folder))
        assert second.returncode == 1
        assert str(first.data_folder) in second.stderr
        assert "in use" in second.stderr
        assert "Traceback" not in second.stderr
        producer = Producer({"bootstrap.servers": first.bootstrap_servers})
        producer.produce("still-there", b"yes")
        assert producer.flush(20) == 0


def test_a_second_server_on_the_same_port_is_refused_and_the_first_unharmed(tmp_path: Path) -> None:
    with MillstreamServer(folder=tmp_path / "first") as first:
        second = serve("--listen", first.bootstrap_servers, "--data", str(tmp_path / "second"))
        assert second.returncode == 1
        assert first.bootstrap_servers in second.stderr
        assert "taken" in second.stderr
        assert not (tmp_path / "second").exists()
        assert AdminClient({"bootstrap.servers": first.bootstrap_servers}).list_topics(timeout=20).brokers


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "num.partition=3"], ["num.partition", "num.partitions", "--set"]),
        (["--set", "num.partitions=three"], ["num.partitions", "three"]),
        (["--set", "num.partitions=0"], ["num.partitions", "0"]),
        (["--set", "num.partitions"], ["num.partitions", "name=value"]),
        (["--listen", "nowhere"], ["--listen", "nowhere", "HOST:PORT"]),
        (["--listen", "127.0.0.1:99999"], ["--listen", "99999"]),
        (["--ephemeral", "--data", "somewhere"], ["--ephemeral", "--data"]),
        (["--log-level", "loud"], ["--log-level", "loud", "debug"]),
        (["--config", "does-not-exist.properties"], ["does-not-exist.properties"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_bad_input_is_named_and_nothing_starts(tmp_path: Path, arguments: list[str], words: list[str]) -> None:
    result = serve("--data", str(tmp_path / "data"), *arguments) if "--data" not in arguments else serve(*arguments)
    assert result.returncode == 2
    assert "listening" not in result.stdout
    for word in words:
        assert word in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "data").exists()


def test_a_wrong_setting_in_the_environment_is_named(tmp_path: Path) -> None:
    result = serve("--data", str(tmp_path / "data"), KAFKA_NUM_PARTITION="3")
    assert result.returncode == 2
    assert "KAFKA_NUM_PARTITION" in result.stderr
    assert "num.partitions" in result.stderr


def test_a_wrong_setting_in_a_file_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("# mine\nnum.partitions=3\nlog.retention.hour=1\n")
    result = serve("--config", str(file), "--data", str(tmp_path / "data"))
    assert result.returncode == 2
    assert f"{file}:3" in result.stderr
    assert "log.retention.hours" in result.stderr


def test_flags_win_over_environment_over_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=2\ndefault.replication.factor=1\n")
    command = [sys.executable, "-m", "millstream", "serve", "--listen", "127.0.0.1:0", "--ephemeral"]
    for environment, flags, expected in (
        ({}, [], 2),
        ({"KAFKA_NUM_PARTITIONS": "3"}, [], 3),
        ({"KAFKA_NUM_PARTITIONS": "3"}, ["--set", "num.partitions=4"], 4),
    ):
        process = subprocess.Popen(
            [*command, "--config", str(file), *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **environment},
        )
        try:
            assert process.stdout is not None
            address = process.stdout.readline().removeprefix("listening on ").strip()
            producer = Producer({"bootstrap.servers": address})
            assert (
                len(producer.list_topics("made-by-asking", timeout=20).topics["made-by-asking"].partitions) == expected
            )
        finally:
            process.terminate()
            process.communicate(timeout=30)


def test_a_privileged_or_foreign_address_is_a_clear_error(tmp_path: Path) -> None:
    result = serve("--listen", "192.0.2.1:9092", "--data", str(tmp_path / "data"))
    assert result.returncode == 1
    assert "192.0.2.1:9092" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_data_folder_is_under_the_users_data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_data() == tmp_path / "millstream"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert default_data() == Path.home() / ".local" / "share" / "millstream"


def test_metrics_have_a_port_of_their_own(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "millstream",
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--ephemeral",
            "--metrics",
            "127.0.0.1:0",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        address = process.stdout.readline().removeprefix("listening on ").strip()
        line = next(line for line in process.stderr if "/metrics" in line)
        host, _, port = line.split("http://")[1].split("/")[0].partition(":")
        producer = Producer({"bootstrap.servers": address})
        producer.produce("counted", b"1")
        assert producer.flush(20) == 0
        text = scrape(host, int(port), "/metrics")
        assert text.startswith("HTTP/1.1 200 OK")
        assert 'millstream_requests_total{api="Produce"} 1.0' in text
        assert 'millstream_partition_log_end_offset{partition="0",topic="counted"} 1.0' in text
        assert scrape(host, int(port), "/").startswith("HTTP/1.1 404")
    finally:
        process.terminate()
        process.communicate(timeout=30)


def scrape(host: str, port: int, path: str) -> str:
    with socket.create_connection((host, port), timeout=20) as peer:
        peer.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        chunks = []
        while chunk := peer.recv(65536):
            chunks.append(chunk)
    return b"".join(chunks).decode()
