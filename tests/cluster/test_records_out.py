"""Records as filters and machines see them, and readers while the cluster goes away or the topic is deleted."""

import pytest

from millstream.cluster.connection import Connection
from millstream.cluster.errors import Unreachable
from millstream.cluster.positions import Position
from millstream.cluster.records_out import Hooks, Reader, Record, json_of, text_of
from support.cluster import eventually
from support.millstream_server import MillstreamServer
from support.topics import Commands

RECORD = Record("t", 1, 2, 3, b"\xff\x00", "ü".encode(), [("h", b"1"), ("h", b"\xfe"), ("none", None)])


def test_text() -> None:
    assert text_of(b"\xffa") == "\\xffa"
    assert text_of("ü".encode()) == "ü"
    assert text_of(None) is None


def test_names() -> None:
    assert RECORD.names() == {
        "topic": "t",
        "partition": 1,
        "offset": 2,
        "timestamp": 3,
        "key": "\\xff\x00",
        "value": "ü",
        "headers": {"h": "\\xfe", "none": None},
    }


def test_json() -> None:
    assert json_of(RECORD) == {
        "topic": "t",
        "partition": 1,
        "offset": 2,
        "timestamp": 3,
        "key": "/wA=",
        "key_encoding": "base64",
        "value": "ü",
        "headers": [
            {"key": "h", "value": "1"},
            {"key": "h", "value": "/g==", "value_encoding": "base64"},
            {"key": "none", "value": None},
        ],
    }


def test_a_cluster_that_goes_away_ends_reading_to_the_end_but_not_following() -> None:
    warnings: list[str] = []
    with MillstreamServer() as server:
        commands = Commands(server.bootstrap_servers)
        topic = commands.topic()
        commands.fill(topic, b"1")
        connection = Connection(server.bootstrap_servers)
        reader = Reader(connection, topic, Position("beginning"), hooks=Hooks(warn=warnings.append))
        assert [record.value for record in reader.to_end()] == [b"1"]
        onward = reader.onward()
        commands.fill(topic, b"2")
        assert next(onward).value == b"2"
        hasty = Reader(connection, topic, Position("end"))
        hasty.ends[0] += 1
        hasty._waiting.add(0)

    def warned() -> list[str]:
        assert list(reader._events.next()) == []
        return warnings

    eventually(warned)
    assert "waiting for it to come back" in warnings[0]
    with pytest.raises(Unreachable):
        list(hasty.to_end())
    reader.close()
    hasty.close()
