"""The parts of a move that need no cluster: codecs in headers, configs, checksums, the state file."""

import struct
from pathlib import Path
from typing import Any

import pytest

from millstream.cluster.errors import BadInput
from millstream.cluster.graduation import configs
from millstream.cluster.graduation.codecs import NAMES, codec_of
from millstream.cluster.graduation.gaps import filler, is_filler
from millstream.cluster.graduation.state import State, TopicRecord
from millstream.cluster.graduation.verification import record_bytes


def batch(attributes: int, body: int = 40) -> bytes:
    return struct.pack(">qiibih", 0, 11 + body, 0, 2, 0, attributes) + bytes(body)


@pytest.mark.parametrize("codec", range(5))
def test_the_last_batch_that_is_not_a_marker_tells_the_codec(codec: int) -> None:
    assert codec_of(batch(0) + batch(codec) + batch(0x30)) == NAMES[codec]
    assert codec_of(batch(codec, 4000)[:100]) == NAMES[codec]


def test_without_a_batch_there_is_no_codec() -> None:
    assert codec_of(b"") is None
    assert codec_of(batch(0x20)) is None
    assert codec_of(batch(1)[:20]) is None


def test_configs_that_go_with_a_topic() -> None:
    def entry(value: str | None, own: bool = False) -> dict[str, Any]:
        return {"value": value, "config_source": "DYNAMIC_TOPIC_CONFIG" if own else "DEFAULT_CONFIG"}

    source = {
        "retention.ms": entry("5"),  # the cluster's, but readers see it
        "segment.bytes": entry("7"),  # the cluster's own business
        "min.insync.replicas": entry("2", own=True),
        "cleanup.policy": entry("delete", own=True),  # as at the target
        "leader.replication.throttled.replicas": entry("*", own=True),
    }
    defaults = {"retention.ms": "6", "segment.bytes": "8", "min.insync.replicas": "1", "cleanup.policy": "delete"}
    assert configs.wanted(source, defaults) == {"retention.ms": "5", "min.insync.replicas": "2"}


def test_configs_for_copying_are_all_taken_back() -> None:
    final = {"retention.ms": "5", "min.insync.replicas": "2"}
    copying = configs.while_copying(final, 10_000_000)
    assert copying["retention.ms"] == "-1"
    assert copying["max.message.bytes"] == "10000000"
    after = configs.afterwards(final)
    assert copying.keys() == after.keys()
    assert {name: value for name, value in after.items() if isinstance(value, str)} == final


class Message:
    """A record as the client gives it."""

    def __init__(self, offset: int, timestamp: int, key: Any, value: Any, headers: Any) -> None:
        self._all = offset, timestamp, key, value, headers

    def offset(self) -> int:
        return int(self._all[0])

    def timestamp(self) -> tuple[int, int]:
        return 1, int(self._all[1])

    def key(self) -> Any:
        return self._all[2]

    def value(self) -> Any:
        return self._all[3]

    def headers(self) -> Any:
        return self._all[4]


def test_different_records_have_different_bytes() -> None:
    records = [
        (1, 5, b"k", b"v", None),
        (2, 5, b"k", b"v", None),
        (1, 6, b"k", b"v", None),
        (1, 5, None, b"v", None),
        (1, 5, b"", b"v", None),
        (1, 5, b"kv", b"", None),
        (1, 5, b"k", None, None),
        (1, 5, b"k", b"v", [("h", None)]),
        (1, 5, b"k", b"v", [("h", b"")]),
        (1, 5, b"k", b"v", [("h", b""), ("h", b"")]),
    ]
    assert len({record_bytes(Message(*record)) for record in records}) == len(records)
    assert record_bytes(Message(1, 5, b"k", b"v", [])) == record_bytes(Message(1, 5, b"k", b"v", None))


def test_fillers_can_be_told() -> None:
    record = filler(1)
    assert record["value"] is None
    assert is_filler(record["key"], record["headers"])
    assert not is_filler(record["key"], None)
    assert not is_filler(b"other", record["headers"])


def test_the_state_comes_back_as_it_was(tmp_path: Path) -> None:
    state = State(tmp_path / "folder" / "state.json", "s", "t")
    record = state.topics["orders"] = TopicRecord("1", "2")
    record.starts[0], record.verified[0], record.done = 7, 9, True
    state.positions["g"] = {"orders-0": 8}
    state.save()
    again = State.load(state.path, "s", "t")
    assert vars(again.topics["orders"]) == vars(record)
    assert again.positions == state.positions
    with pytest.raises(BadInput, match="belongs to a move from cluster s to t"):
        State.load(state.path, "s", "other")


def test_a_missing_state_is_a_new_move(tmp_path: Path) -> None:
    assert State.load(tmp_path / "none.json", "s", "t").topics == {}
