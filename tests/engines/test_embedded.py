"""The embedded engine: started and stopped in this process, and what it says when it cannot."""

import os
import socket
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from millstream.engines.embedded import EmbeddedEngine
from millstream.engines.errors import EngineError, EngineInputError


def topics(bootstrap: str) -> set[str]:
    return set(AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=10).topics)


def test_start_stop_and_start_again_on_the_same_data(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path, port=0)
    assert engine.health() == ["the log server does not run"]
    engine.start()
    try:
        producer = Producer({"bootstrap.servers": engine.bootstrap, "log_level": 0})
        producer.produce("kept", b"x")
        assert producer.flush(10) == 0
        assert engine.health() == []
        (process,) = engine.processes()
        assert process.pid == os.getpid()
        assert process.address == engine.bootstrap
    finally:
        engine.stop()
    engine.stop()
    again = EmbeddedEngine(tmp_path, port=0)
    again.start()
    try:
        assert "kept" in topics(again.bootstrap)
    finally:
        again.stop()


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(EngineError, match=rf"^port {port} is taken.*--port"):
            EmbeddedEngine(tmp_path, port=port).start()


def test_one_engine_for_each_folder(tmp_path: Path) -> None:
    first = EmbeddedEngine(tmp_path, port=0)
    first.start()
    try:
        with pytest.raises(EngineError, match="in use"):
            EmbeddedEngine(tmp_path, port=0).start()
        assert first.health() == []
    finally:
        first.stop()


def test_settings_are_used_and_checked(tmp_path: Path) -> None:
    with pytest.raises(EngineInputError, match=r"num\.partitons.*the nearest is .num\.partitions"):
        EmbeddedEngine(tmp_path, port=0, settings={"num.partitons": "3"}).start()
    engine = EmbeddedEngine(
        tmp_path, settings={"listeners": "PLAINTEXT://127.0.0.1:0", "auto.create.topics.enable": "false"}
    )
    engine.start()
    try:
        assert topics(engine.bootstrap) == set()
    finally:
        engine.stop()


def test_the_data_folder_of_the_other_engine(tmp_path: Path) -> None:
    (tmp_path / "engine").write_text("kafka\n")
    with pytest.raises(EngineError, match="holds the data of the kafka engine"):
        EmbeddedEngine(tmp_path, port=0).start()
