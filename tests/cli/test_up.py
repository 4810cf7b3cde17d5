"""`millstream up`, `down` and `status` as a person meets them: in the foreground, on a terminal, in the background."""

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from millstream.engines import jars
from millstream.engines.processes import is_running
from millstream.jvm import maven
from support.cli import COMMAND, Result
from support.fake_java import fake_java
from support.java import kafka_cache
from support.terminal import in_terminal, read_terminal


class Machine:
    """A user's machine with nothing on it: folders and environment of its own, and the real command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("MILLSTREAM_")}
        for name in ("DATA", "STATE", "CONFIG"):
            self.environment[f"XDG_{name}_HOME"] = str(folder / name.lower() / "home")
        self.environment.pop("JAVA_HOME", None)

    def run(self, *arguments: str) -> Result:
        done = subprocess.run(
            [*COMMAND, *arguments], capture_output=True, text=True, env=self.environment, timeout=110, check=False
        )
        return Result(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def foreground(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        command = [*COMMAND, "up", *arguments]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=self.environment) as process:
            try:
                yield process
            finally:
                process.terminate()

    @contextmanager
    def detached(self, *arguments: str) -> Iterator[str]:
        """The address."""
        started = self.run("up", "--detach", *arguments)
        assert started.exit_code == 0, started
        try:
            yield started.stdout.removeprefix("listening on ").strip()
        finally:
            self.run("down")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def produce(bootstrap: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(count):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(30) == 0


def take(bootstrap: str, topic: str, group: str, count: int) -> None:
    """Reads that many as a group and commits them."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", "log_level": 0}
    )
    consumer.subscribe([topic])
    taken = consumer.consume(count, 30)
    assert len(taken) == count
    consumer.commit(message=taken[-1], asynchronous=False)
    consumer.close()


# --- the embedded engine ---


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_plain_lines_and_a_clean_end(machine: Machine, end: signal.Signals) -> None:
    with machine.foreground("--port", "0", "--data", str(machine.data)) as process:
        assert process.stdout is not None
        assert re.fullmatch(r"listening on 127\.0\.0\.1:\d+\n", process.stdout.readline())
        line = process.stdout.readline()
        assert line.startswith("brokers 1/1, controller 1, topics 0, partitions 0, under-replicated 0, offline 0")
        process.send_signal(end)
        rest, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert rest == "stopped\n"
    assert errors == "starting the log server\n"
    assert "started" not in rest
    assert not (machine.data / "run" / "platform.json").exists()


def test_json_for_machines(machine: Machine) -> None:
    with machine.foreground("--port", "0", "--data", str(machine.data), "--json") as process:
        assert process.stdout is not None
        listening = json.loads(process.stdout.readline())
        assert listening["engine"] == "embedded"
        assert json.loads(process.stdout.readline())["controller"] == 1
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=30)
    assert json.loads(rest) == {"stopped": True}
    detached = machine.run("up", "--detach", "--port", "0", "--json")
    try:
        assert machine.run("status", "--bootstrap", json.loads(detached.stdout)["bootstrap"]).exit_code == 0
    finally:
        assert machine.run("down").exit_code == 0


def test_up_status_and_down_in_the_background(machine: Machine) -> None:
    with machine.detached("--port", "0") as bootstrap:
        produce(bootstrap, "orders", 30)
        take(bootstrap, "orders", "readers", 10)
        status = machine.run("status")
        assert status.exit_code == 0, status
        assert bootstrap in status.stdout
        assert "embedded engine, data in" in status.stdout
        assert re.search(r"controller +1\b", status.stdout)
        assert re.search(r"under-replicated +0\b", status.stdout)
        assert re.search(r"offline +0\b", status.stdout)
        assert re.search(r"readers +Empty +20\b", status.stdout)
        found = json.loads(machine.run("status", "--json").stdout)
        assert found["bootstrap"] == bootstrap
        assert found["groups"] == [{"group": "readers", "state": "Empty", "lag": 20}]
        assert found["platform"]["engine"] == "embedded"
        assert found["topics"] == 1

        second = machine.run("up", "--port", "0")
        assert second.exit_code == 1
        assert f"it runs already at {bootstrap}" in second.stderr
        again = machine.run("up", "--port", "0", "--detach")
        assert again.exit_code == 1
        assert f"it runs already at {bootstrap}" in again.stderr
        assert machine.run("status").exit_code == 0

        down = machine.run("down", "--json")
        assert down.exit_code == 0, down
        assert json.loads(down.stdout)["engine"] == "embedded"
    after = machine.run("down")
    assert after.exit_code == 4
    assert "no platform runs here" in after.stderr


def test_data_and_groups_are_kept_between_runs(machine: Machine) -> None:
    for run in range(2):
        with machine.detached("--port", "0", "--data", str(machine.data)) as bootstrap:
            produce(bootstrap, "kept", 5)
            take(bootstrap, "kept", "group", 5)
            assert json.loads(machine.run("status", "--json").stdout)["groups"][0]["lag"] == 0, run


def test_several_platforms_and_which_is_meant(machine: Machine) -> None:
    first, second = machine.folder / "first", machine.folder / "second"
    with machine.detached("--port", "0", "--data", str(first)):
        started = machine.run("up", "--port", "0", "--data", str(second), "--detach")
        bootstrap = started.stdout.removeprefix("listening on ").strip()
        assert json.loads(machine.run("status", "--json").stdout)["bootstrap"] == bootstrap, "the one started last"
        which = machine.run("down")
        assert which.exit_code == 2
        assert str(first) in which.stderr
        assert str(second) in which.stderr
        assert machine.run("down", "--data", str(second)).exit_code == 0
        assert machine.run("down", "--data", str(second)).exit_code == 4


def test_the_server_that_was_killed_is_not_running_any_more(machine: Machine) -> None:
    with machine.detached("--port", "0"):
        pid = json.loads(machine.run("status", "--json").stdout)["platform"]["pid"]
        os.kill(pid, signal.SIGKILL)
        assert machine.run("down").exit_code == 4
        with machine.detached("--port", "0"):
            assert machine.run("status").exit_code == 0


def test_the_live_view_on_a_terminal(machine: Machine) -> None:
    with in_terminal([*COMMAND, "up", "--port", "0"], machine.environment) as (process, terminal):
        drawn = read_terminal(terminal, "under-replicated")
        assert "embedded engine" in drawn
        bootstrap = re.search(r"127\.0\.0\.1:\d+", drawn)
        assert bootstrap is not None
        produce(bootstrap[0], "seen", 30)
        take(bootstrap[0], "seen", "watchers", 10)
        drawn = read_terminal(terminal, "watchers")
        assert re.search(r"in [\d,]+/s +out [\d,]+/s", drawn)
        process.send_signal(signal.SIGINT)
        rest = read_terminal(terminal, "")
        process.wait(30)
    assert process.returncode == 0
    assert "Traceback" not in rest
    assert rest.rstrip().endswith("stopped")
    assert "\x1b[?25h" in rest, "the cursor is shown again"


# --- what goes wrong ---


def test_a_port_that_is_taken(machine: Machine) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        for more in ([], ["--detach"]):
            result = machine.run("up", "--port", str(port), *more)
            assert result.exit_code == 1
            assert f"millstream: port {port} is taken" in result.stderr
            assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--engine", "redis"], 2, "--engine 'redis' is not one of embedded, kafka"),
        (["--brokers", "3"], 2, "need --engine kafka"),
        (["--separate-controller"], 2, "need --engine kafka"),
        (["--engine", "kafka", "--brokers", "0"], 2, "--brokers 0: one machine can have 1 to 9"),
        (["--set", "nonsense"], 2, "--set 'nonsense' is not NAME=VALUE"),
        (["--port", "0", "--set", "num.partitions=many"], 2, "num.partitions"),
        (["--broker", "2"], 4, "no platform runs here"),
    ],
)
def test_bad_input(machine: Machine, arguments: list[str], code: int, said: str) -> None:
    result = machine.run("up", *arguments)
    assert result.exit_code == code, result
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_the_data_folder_of_the_other_engine(machine: Machine) -> None:
    with machine.detached("--port", "0", "--data", str(machine.data)):
        pass
    result = machine.run("up", "--engine", "kafka", "--data", str(machine.data))
    assert result.exit_code == 1
    assert "holds the data of the embedded engine" in result.stderr
    assert "--engine embedded" in result.stderr


def test_no_java_and_an_old_one(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.environment["PATH"] = str(tmp_path / "empty")
    result = machine.run("up", "--engine", "kafka", "--port", "0")
    assert result.exit_code == 1
    assert "there is no `java` on the PATH: install Java 17" in result.stderr
    fake_java(tmp_path / "old", monkeypatch, version="11.0.2")
    machine.environment["PATH"] = os.environ["PATH"]
    detached = machine.run("up", "--engine", "kafka", "--port", "0", "--detach")
    assert detached.exit_code == 1
    assert "is Java 11, and Apache Kafka needs 17 or newer" in detached.stderr


def test_jars_that_are_not_to_be_had(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "Server access error at url https://repo1.maven.org/x.pom (java.net.ConnectException: refused)"
    fake_java(tmp_path / "bin", monkeypatch, f"echo '{reason}'; exit 1")
    machine.environment["PATH"] = os.environ["PATH"]
    machine.environment["MILLSTREAM_CACHE"] = str(tmp_path / "cache")
    for more in ([], ["--detach"]):
        result = machine.run("up", "--engine", "kafka", "--port", "0", *more)
        assert result.exit_code == 1
        assert "are not to be had from Maven Central: https://repo1.maven.org/x.pom" in result.stderr
        assert "Traceback" not in result.stderr
    assert machine.run("down").exit_code == 4


def test_a_start_that_is_interrupted_leaves_nothing_running(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forever = """
    for last in "$@"; do :; done
    case "$*" in
      *StorageTool*) mkdir -p "$(dirname "$last")/data"; touch "$(dirname "$last")/data/meta.properties";;
      *) while :; do sleep 0.1; done;;
    esac
    """
    fake_java(tmp_path / "bin", monkeypatch, forever)
    machine.environment["PATH"] = os.environ["PATH"]
    machine.environment["MILLSTREAM_CACHE"] = str(tmp_path / "cache")
    folder = maven.jar_folder(jars.KAFKA, tmp_path / "cache")
    folder.mkdir(parents=True)
    (folder / ".complete").write_text(jars.KAFKA.stamp())
    with machine.foreground("--engine", "kafka", "--port", "0", "--data", str(machine.data)) as process:
        assert process.stderr is not None
        while process.stderr.readline() != "waiting for the broker\n":
            pass
        pid = int((machine.data / "node-1" / "pid").read_text())
        assert is_running(pid, str(machine.data))
        process.send_signal(signal.SIGTERM)
        rest, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert (rest, errors) == ("", "")
    assert not is_running(pid, str(machine.data))
    assert machine.run("down").exit_code == 4


def test_serve_does_not_open_the_folder_of_a_cluster(machine: Machine) -> None:
    machine.data.mkdir()
    (machine.data / "engine").write_text("kafka\n")
    result = machine.run("serve", "--listen", "127.0.0.1:0", "--data", str(machine.data))
    assert result.exit_code == 1
    assert "holds the data of the kafka engine" in result.stderr
    assert [file.name for file in machine.data.iterdir()] == ["engine"]


def test_single_brokers_are_for_clusters(machine: Machine) -> None:
    with machine.detached("--port", "0"):
        for command in (["down", "--broker", "1"], ["up", "--broker", "1"]):
            result = machine.run(*command)
            assert result.exit_code == 2
            assert "--broker is for clusters of the kafka engine" in result.stderr
        assert machine.run("status").exit_code == 0
    assert machine.run("down", "--kill").exit_code == 2


def test_status_of_an_address_where_nobody_is(machine: Machine) -> None:
    result = machine.run("status", "--bootstrap", "127.0.0.1:1")
    assert result.exit_code == 3
    assert "no broker answers at 127.0.0.1:1" in result.stderr


# --- Apache Kafka ---


def test_three_brokers_of_apache_kafka(machine: Machine) -> None:
    machine.environment["MILLSTREAM_CACHE"] = str(kafka_cache())
    options = ["--engine", "kafka", "--brokers", "3", "--port", "0", "--set", "offsets.topic.num.partitions=1"]
    with machine.detached(*options) as bootstrap:
        assert len(bootstrap.split(",")) == 3
        produce(bootstrap, "orders", 30)
        take(bootstrap, "orders", "readers", 10)
        found = json.loads(machine.run("status", "--json").stdout)
        assert [(broker["id"], broker["up"]) for broker in found["brokers"]] == [(1, True), (2, True), (3, True)]
        assert found["controller"] in (1, 2, 3)
        assert found["groups"] == [{"group": "readers", "state": "Empty", "lag": 20}]
        assert found["under_replicated"] == found["offline"] == []
        assert [item["roles"] for item in found["platform"]["processes"]] == ["broker,controller"] * 3
        assert sum(broker["replicas"] for broker in found["brokers"]) == 3 * 2, "replicated by default"

        # The process that watches over the brokers dies; they go on, and can still be found and stopped.
        os.kill(found["platform"]["pid"], signal.SIGKILL)
        assert machine.run("status").exit_code == 0
        down = machine.run("down")
        assert down.exit_code == 0, down
        assert "stopped kafka" in down.stdout
        for item in found["platform"]["processes"]:
            assert not is_running(item["pid"], "kafka.Kafka")
            assert Path(item["log"]).stat().st_size > 0
    assert machine.run("status").exit_code == 3
