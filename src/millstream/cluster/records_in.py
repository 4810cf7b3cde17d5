"""Records into a topic: what a line of input means, and the producer that delivers it and counts.

A line is, from left to right, `HEADERS SEPARATOR KEY SEPARATOR VALUE`, each part only if its separator is given,
headers as `name=value,name=value`; or it is a JSON object with `value`, `key`, `headers`, `partition` and `timestamp`,
as `consume` prints them. A line that cannot be read ends the input (`BadLine`): what came before is delivered.
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from millstream.cluster.answers import nearest
from millstream.cluster.connection import Connection
from millstream.cluster.errors import BadInput
from millstream.cluster.positions import parse_time, unknown_topic

PARTITIONERS = (
    "murmur2_random",
    "murmur2",
    "consistent",
    "consistent_random",
    "fnv1a",
    "fnv1a_random",
    "random",
)
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = ("all", "-1", "1", "0")
METADATA_SECONDS = 10.0
_FIELDS = ("key", "value", "headers", "partition", "timestamp")
_IGNORED_FIELDS = ("topic", "offset", "time", "key_encoding", "value_encoding")
Headers = list[tuple[str, str | bytes | None]]


class BadLine(BadInput):
    """A line of the input cannot be read."""


class NewRecord(NamedTuple):
    """A record to be produced; None leaves partition and timestamp to the producer."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = []  # noqa: RUF012 - never changed
    partition: int | None = None
    timestamp: int | None = None


class LineFormat(NamedTuple):
    """How lines become records; see the module's contract."""

    json: bool = False
    key_separator: bytes | None = None
    headers_separator: bytes | None = None
    key: bytes | None = None
    headers: Headers = []  # noqa: RUF012 - never changed
    null_marker: bytes | None = None


class Options(NamedTuple):
    """How records are delivered; `partition` sends all that name none to one, `rate` is records a second."""

    partitioner: str = PARTITIONERS[0]
    partition: int | None = None
    acks: str = "all"
    compression: str = "none"
    rate: float | None = None
    timeout: float = 30.0


class Delivered(NamedTuple):
    """`partitions` are (partition, records, first offset, last offset); offsets are -1 with acks=0."""

    records: int
    bytes: int
    failed: int
    error: str | None
    seconds: float
    partitions: list[tuple[int, int, int, int]]


def parse_headers(texts: Iterable[str], argument: str) -> Headers:
    """`name=value` texts; BadInput, naming the argument, if one is not."""
    headers: Headers = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise BadInput(f"{argument}: {text!r} must be name=value, for example trace=abc")
        headers.append((name, value.encode()))
    return headers


def parse_lines(lines: Iterable[bytes], form: LineFormat) -> Iterator[NewRecord]:
    """A record a line, without the line's end; empty lines are records with an empty value, except in JSON."""
    for number, line in enumerate(lines, 1):
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            if not form.json:
                yield _plain(text, form)
            elif text.strip():
                yield _json(text, form)
        except ValueError as error:
            raise BadLine(f"line {number}: {error}") from error


def produce(
    connection: Connection,
    topic: str,
    records: Iterable[NewRecord],
    options: Options,
    progress: Callable[[int, int], None] = lambda records, size: None,
) -> tuple[Delivered, BadInput | KeyboardInterrupt | None]:
    """Delivers all records; returns the count and what ended the input early, if something did.

    NotFound if there is no such topic (it is never made by producing). `progress` is told records and bytes so far.
    """
    from confluent_kafka import KafkaException

    producer = connection.producer(
        {
            "partitioner": options.partitioner,
            "acks": options.acks,
            "compression.type": options.compression,
            "linger.ms": 5,
            "message.max.bytes": 1_000_000_000,  # the broker decides what is too large
            "message.timeout.ms": int(options.timeout * 1000),
            "enable.idempotence": options.acks in ("all", "-1"),
            "allow.auto.create.topics": False,
        }
    )
    partitions = _partitions(producer, topic)
    if options.partition is not None:
        _check_partition(topic, options.partition, partitions, "--partition ")
    tally = _Tally(progress)
    stopped: BadInput | KeyboardInterrupt | None = None
    try:
        for number, record in enumerate(records):
            _pace(producer, tally.start, number, options.rate)
            wanted = record.partition if record.partition is not None else options.partition
            if record.partition is not None:
                _check_partition(topic, record.partition, partitions, f"record {number + 1}: ")
            optional: dict[str, Any] = {"timestamp": record.timestamp} if record.timestamp is not None else {}
            optional |= {"partition": wanted} if wanted is not None else {}
            while True:
                try:
                    producer.produce(
                        topic, record.value, record.key, headers=record.headers, on_delivery=tally.told, **optional
                    )
                except BufferError:
                    producer.poll(0.1)
                except KafkaException as error:
                    tally.failed += 1
                    tally.error = tally.error or error.args[0].str()
                    break
                else:
                    break
            producer.poll(0)
            if tally.error:
                break
    except (BadInput, KeyboardInterrupt) as error:
        stopped = error
    left = producer.flush(options.timeout + 1)  # the producer itself gives a record up first
    return tally.result(left), stopped


class _Tally:
    """What the cluster has acknowledged so far."""

    def __init__(self, progress: Callable[[int, int], None]) -> None:
        self.start = time.monotonic()
        self.failed = 0
        self.error: str | None = None
        self._progress = progress
        self._records = 0
        self._bytes = 0
        self._partitions: dict[int, list[int]] = {}

    def told(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failed += 1
            self.error = self.error or str(error.str())
            return
        self._records += 1
        self._bytes += len(message.value() or b"") + len(message.key() or b"")
        offset = -1 if message.offset() is None else message.offset()
        count = self._partitions.setdefault(message.partition(), [0, offset, offset])
        count[0] += 1
        count[1] = min(count[1], offset)
        count[2] = max(count[2], offset)
        self._progress(self._records, self._bytes)

    def result(self, left: int) -> Delivered:
        partitions = [(partition, *numbers) for partition, numbers in sorted(self._partitions.items())]
        error = self.error or ("the cluster did not answer in time" if left else None)
        seconds = time.monotonic() - self.start
        return Delivered(
            self._records,
            self._bytes,
            self.failed + left,
            error,
            seconds,
            [(partition, count, first, last) for partition, count, first, last in partitions],
        )


def _partitions(producer: Any, topic: str) -> int:
    from confluent_kafka import KafkaException

    from millstream.cluster.answers import refuse_client

    try:
        known = producer.list_topics(timeout=METADATA_SECONDS).topics
    except KafkaException as error:
        refuse_client(f"topic {topic}", error)
    if topic not in known:
        unknown_topic(topic, known)
    return len(known[topic].partitions)


def _check_partition(topic: str, partition: int, count: int, where: str) -> None:
    if not 0 <= partition < count:
        raise BadInput(f"{where}{partition}: {topic} has partitions 0 to {count - 1}")


def _pace(producer: Any, start: float, number: int, rate: float | None) -> None:
    """Waits until it is this record's turn."""
    if rate:
        while (wait := start + number / rate - time.monotonic()) > 0:
            producer.poll(min(wait, 0.1))


def _plain(line: bytes, form: LineFormat) -> NewRecord:
    headers, key = list(form.headers), form.key
    if form.headers_separator is not None:
        column, found, line = line.partition(form.headers_separator)
        if not found:
            raise ValueError(f"it has no {form.headers_separator.decode()!r} between headers and the rest")
        headers += _header_column(column)
    if form.key_separator is not None:
        key, found, line = line.partition(form.key_separator)
        if not found:
            raise ValueError(f"it has no {form.key_separator.decode()!r} between key and value")
    return NewRecord(None if line == form.null_marker else line, key, headers)


def _header_column(column: bytes) -> Headers:
    headers: Headers = []
    for text in column.split(b",") if column else []:
        name, found, value = text.partition(b"=")
        if not found or not name:
            raise ValueError(f"its headers are {column.decode(errors='replace')!r}, not name=value,name=value")
        headers.append((name.decode(), value))
    return headers


def _json(line: bytes, form: LineFormat) -> NewRecord:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise ValueError('it must be a JSON object, for example {"key": "a", "value": {"n": 1}}')
    for name in data:
        if name not in _FIELDS + _IGNORED_FIELDS:
            raise ValueError(f"a record has no {name!r}, but {', '.join(_FIELDS)}{nearest(name, _FIELDS)}")
    if "value" not in data:
        raise ValueError('it has no "value"; a tombstone says "value": null')
    partition, timestamp = data.get("partition"), data.get("timestamp")
    if isinstance(timestamp, str):
        timestamp = parse_time(timestamp)
        if timestamp is None:
            raise ValueError(f"timestamp {data['timestamp']!r} is neither milliseconds nor a time")
    for name, number in (("partition", partition), ("timestamp", timestamp)):
        if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 0):
            raise ValueError(f"{name} {number!r} is not a whole number from 0 on")
    key = _content(data["key"], data.get("key_encoding")) if "key" in data else form.key
    value = _content(data["value"], data.get("value_encoding"))
    return NewRecord(
        None if value == form.null_marker else value,
        key,
        [*form.headers, *_json_headers(data.get("headers"))],
        partition,
        timestamp,
    )


def _json_headers(headers: Any) -> Headers:
    """`{"name": "value"}`, or `[{"key": "name", "value": "value"}]` where names repeat."""
    if headers is None:
        return []
    pairs: Sequence[tuple[Any, Any, Any]]
    if isinstance(headers, dict):
        pairs = [(name, value, None) for name, value in headers.items()]
    elif isinstance(headers, list) and all(isinstance(header, dict) and "key" in header for header in headers):
        pairs = [(header["key"], header.get("value"), header.get("value_encoding")) for header in headers]
    else:
        raise ValueError('headers must be {"name": "value"} or [{"key": "name", "value": "value"}]')
    return [(str(name), _content(value, encoding)) for name, value, encoding in pairs]


def _content(thing: Any, encoding: str | None) -> bytes | None:
    """A text as it is, null as null, anything else as JSON."""
    if thing is None:
        return None
    if encoding == "base64":
        try:
            return base64.b64decode(thing, validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            raise ValueError(f"{thing!r} is not base64") from error
    if encoding is not None:
        raise ValueError(f"there is no encoding {encoding!r}, only base64")
    return thing.encode() if isinstance(thing, str) else json.dumps(thing, separators=(",", ":")).encode()
