"""What the kafka engine says when it cannot start, with fakes for Java; tests/system and tests/cli run the real one."""

import socket
from pathlib import Path

import pytest

from millstream.engines import jars, ports
from millstream.engines.errors import EngineError, EngineInputError
from millstream.engines.kafka import KafkaEngine
from millstream.jvm import maven
from support.fake_java import fake_java

# Formatting works; the broker itself says why it does not run.
ENDS_AT_ONCE = """
for last in "$@"; do :; done
case "$*" in
  *StorageTool*) folder="$(dirname "$last")/data"; mkdir -p "$folder"; echo formatted > "$folder/meta.properties";;
  *) echo "2026-01-01 ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)"
     echo "org.apache.kafka.common.config.ConfigException: Invalid value x for configuration num.partitions"
     exit 1;;
esac
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache that looks complete."""
    folder = maven.jar_folder(jars.KAFKA, tmp_path / "cache")
    folder.mkdir(parents=True)
    (folder / ".complete").write_text(jars.KAFKA.stamp())
    return tmp_path / "cache"


def test_no_java(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(EngineError, match="needs Java"):
        KafkaEngine(tmp_path / "data", cache=cache).start()
    assert not (tmp_path / "data").exists()


def test_a_port_that_is_taken_is_named(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "bin", monkeypatch)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        with pytest.raises(EngineError, match=rf"^port .*{taken} is taken.*--port"):
            KafkaEngine(tmp_path / "data", brokers=2, port=taken - 1, cache=cache).start()


def test_the_data_folder_of_the_other_engine(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "bin", monkeypatch)
    (tmp_path / "engine").write_text("embedded\n")
    with pytest.raises(EngineError, match="holds the data of the embedded engine"):
        KafkaEngine(tmp_path, cache=cache).start()


def test_a_broker_that_ends_says_why(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "bin", monkeypatch, ENDS_AT_ONCE)
    engine = KafkaEngine(tmp_path / "data", port=0, cache=cache, settings={"num.partitions": "x"})
    with pytest.raises(EngineError, match=r"broker 1 ended: Invalid value x for configuration num\.partitions \(see"):
        engine.start()
    assert engine.processes()[0].pid is None
    assert "num.partitions=x\n" in (tmp_path / "data" / "node-1" / "server.properties").read_text()
    assert engine.health() == [f"broker 1 is down (see {tmp_path}/data/node-1/server.log)"]


def test_storage_that_cannot_be_formatted(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "bin", monkeypatch, 'echo "java.io.IOException: No space left on device"; exit 1')
    with pytest.raises(EngineError, match="storage of node 1 cannot be formatted: No space left on device"):
        KafkaEngine(tmp_path / "data", port=0, cache=cache).start()


def test_single_brokers_that_are_not_there(tmp_path: Path, cache: Path) -> None:
    engine = KafkaEngine(tmp_path / "data", brokers=2, cache=cache)
    with pytest.raises(EngineInputError, match="there is no broker 7; there are 1, 2, and 3 would be one more"):
        engine.stop_broker(7)
    with pytest.raises(EngineError, match="broker 2 does not run"):
        engine.kill_broker(2)


def test_a_pid_file_of_another_process_is_not_believed(tmp_path: Path) -> None:
    engine = KafkaEngine(tmp_path)
    (tmp_path / "node-1").mkdir()
    (tmp_path / "node-1" / "pid").write_text("1\n")
    assert engine.pid(1) is None
    engine.stop()


def test_free_ports_are_below_those_of_outgoing_connections() -> None:
    found = ports.free_ports(5)
    assert len(set(found)) == 5
    assert all(ports.FIRST <= port <= ports.LAST for port in found)
    assert all(map(ports.is_free, found))
