"""What a line of input means, and what is counted when the cluster stops answering."""

import json
import os
import signal
from collections.abc import Iterator

import pytest

from millstream.cluster.connection import Connection
from millstream.cluster.errors import BadInput
from millstream.cluster.records_in import BadLine, LineFormat, NewRecord, Options, parse_headers, parse_lines, produce
from support.millstream_server import MillstreamServer
from support.topics import Commands


def parse(text: str | bytes, **form: object) -> list[NewRecord]:
    data = text.encode() if isinstance(text, str) else text
    return list(parse_lines(data.splitlines(keepends=True), LineFormat(**form)))  # type: ignore[arg-type] # from tests


def test_plain_lines() -> None:
    assert parse(b"a\n\xff\x00\r\n\nlast") == [
        NewRecord(b"a"),
        NewRecord(b"\xff\x00"),
        NewRecord(b""),
        NewRecord(b"last"),
    ]


def test_a_key_for_all_headers_for_all_and_tombstones() -> None:
    records = parse("x\nNULL\n", key=b"k", headers=[("h", b"1")], null_marker=b"NULL")
    assert records == [NewRecord(b"x", b"k", [("h", b"1")]), NewRecord(None, b"k", [("h", b"1")])]


def test_only_the_first_separator_counts() -> None:
    assert parse("a:b:c\n:x\n", key_separator=b":") == [NewRecord(b"b:c", b"a"), NewRecord(b"x", b"")]
    assert parse("h=1|a::b\n", key_separator=b"::", headers_separator=b"|") == [NewRecord(b"b", b"a", [("h", b"1")])]


def test_json_kinds() -> None:
    line = json.dumps({"key": 1, "value": [True, None], "headers": [{"key": "h", "value": None}], "topic": "x"})
    assert parse(line, json=True) == [NewRecord(b"[true,null]", b"1", [("h", None)])]


def test_json_takes_the_key_and_headers_of_all_records_where_it_has_none() -> None:
    form = {"json": True, "key": b"k", "headers": [("h", b"1")], "null_marker": b"gone"}
    assert parse('{"value": "gone", "headers": {"g": "2"}}', **form) == [
        NewRecord(None, b"k", [("h", b"1"), ("g", b"2")])
    ]


@pytest.mark.parametrize("line", ["{", "3", '{"value": 1, "partition": -1}', '{"value": 1, "timestamp": true}'])
def test_the_line_is_named(line: str) -> None:
    with pytest.raises(BadLine, match="line 2: "):
        parse('{"value": 1}\n' + line, json=True)


def test_headers() -> None:
    assert parse_headers(["a=1", "a=", "b=x=y"], "--header") == [("a", b"1"), ("a", b""), ("b", b"x=y")]
    for wrong in ("a", "=1", ""):
        with pytest.raises(BadInput, match="--header"):
            parse_headers([wrong], "--header")


def test_records_that_nobody_acknowledges_are_given_up_and_counted() -> None:
    with MillstreamServer() as server:
        topic = Commands(server.bootstrap_servers).topic()

        def records() -> Iterator[NewRecord]:
            assert server.pid is not None
            os.kill(server.pid, signal.SIGSTOP)
            yield NewRecord(b"1")
            yield NewRecord(b"2")

        try:
            delivered, stopped = produce(
                Connection(server.bootstrap_servers), topic, records(), Options(acks="1", timeout=0.5)
            )
        finally:
            assert server.pid is not None
            os.kill(server.pid, signal.SIGCONT)
    assert (delivered.records, delivered.failed, stopped) == (0, 2, None)
    assert delivered.error is not None
    assert "timed out" in delivered.error.lower()
