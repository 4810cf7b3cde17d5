"""A raw protocol client: hand-made requests over a plain socket, with kio's messages (not Millstream's own).

Requests are written as keyword arguments with kio's field names, nested structures as dictionaries; times are integers
in milliseconds, a field left out has the schema's default or the empty value of its type:

    raw.call("create_topics", 7, topics=[{"name": "t", "num_partitions": 1, "replication_factor": 1}])

Responses come back as plain namespaces with kio's field names: arrays are lists, times integers, uuids `uuid.UUID`
(None for the zero uuid), error codes kio's `ErrorCode`.
"""

import datetime
import functools
import io
import socket
import struct
import types
import typing
import uuid
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

from kio import index
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType
from kio.static.primitive import i64

API_KEYS = {name: key for key, name in api_key_map.items()}
ZERO_BY_TYPE: dict[str, Any] = {
    "string": "",
    "bytes": b"",
    "records": None,
    "bool": False,
    "uuid": None,
    "error_code": ErrorCode.none,
    "float64": 0.0,
}
# kio's classes are found and filled at run time; their types cannot be named here.
KioClass = Any


class RawClient:
    """One connection. Requests may be pipelined with `send` and `receive`; `call` does both."""

    def __init__(self, address: str, *, client_id: str | None = "behaviour", timeout: float = 30) -> None:
        host, port = address.split(",")[0].rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout)
        self._client_id = client_id
        self._correlation_id = 0
        self._pending: list[tuple[int, str, int]] = []

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def call(self, api: str, version: int, **body: Any) -> Any:
        self.send(api, version, **body)
        return self.receive()

    def send(self, api: str, version: int, *, expect_response: bool = True, **body: Any) -> None:
        self._correlation_id += 1
        self._socket.sendall(frame(encode_request(api, version, self._correlation_id, self._client_id, body)))
        if expect_response:
            self._pending.append((self._correlation_id, api, version))

    def receive(self) -> Any:
        """The response to the oldest unanswered request."""
        correlation_id, api, version = self._pending.pop(0)
        payload = self.receive_bytes()
        response_class = load(api, version, EntityType.response)
        header, header_size = entity_reader(response_class.__header_schema__)(payload, 0)
        assert header.correlation_id == correlation_id
        body, body_size = entity_reader(response_class)(payload, header_size)
        assert header_size + body_size == len(payload), f"{api} v{version}: bytes left over after the response"
        return to_plain(body)

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive_bytes(self) -> bytes:
        """The payload of the next frame."""
        (size,) = struct.unpack(">i", self._read_exactly(4))
        return self._read_exactly(size)

    def has_nothing_to_read(self, seconds: float) -> bool:
        """Whether nothing arrives within the given time."""
        before = self._socket.gettimeout()
        self._socket.settimeout(seconds)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self._socket.settimeout(before)
        return False

    def is_closed_by_peer(self) -> bool:
        """Waits until the server closes the connection (True) or says something (False)."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _read_exactly(self, size: int) -> bytes:
        parts = []
        while size:
            part = self._socket.recv(min(size, 1 << 20))
            if not part:
                raise EOFError("the server closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def encode_request(api: str, version: int, correlation_id: int, client_id: str | None, body: dict[str, Any]) -> bytes:
    request_class = load(api, version, EntityType.request)
    header_class = request_class.__header_schema__
    known: dict[str, Any] = {
        "request_api_key": API_KEYS[api],
        "request_api_version": version,
        "correlation_id": correlation_id,
        "client_id": client_id,
    }
    header = header_class(**{field.name: known[field.name] for field in fields(header_class)})
    buffer = io.BytesIO()
    entity_writer(header_class)(buffer, header)
    entity_writer(request_class)(buffer, to_entity(request_class, body))
    return buffer.getvalue()


@functools.cache
def load(api: str, version: int, kind: Any) -> KioClass:
    loader: Callable[..., KioClass] = (
        index.load_request_schema if kind is EntityType.request else index.load_response_schema
    )
    found = loader(API_KEYS[api], version)
    make_times_plain(found)
    return found


def make_times_plain(cls: KioClass) -> None:
    """Turns kio's points in time into plain integers: it refuses to read the negative ones, which Kafka does send."""
    for field in fields(cls):
        kind, _ = inner_type(field)
        if is_dataclass(kind):
            make_times_plain(kind)
        elif field.metadata.get("kafka_type") == "datetime_i64":
            field.metadata = types.MappingProxyType({**field.metadata, "kafka_type": "int64"})
            field.type = i64


def to_entity(cls: KioClass, values: dict[str, Any]) -> Any:
    """A kio dataclass from plain values."""
    known = {field.name: field for field in fields(cls)}
    unknown = values.keys() - known.keys()
    if unknown:
        raise TypeError(f"{cls.__module__}.{cls.__name__} has no {sorted(unknown)}, but {sorted(known)}")
    filled = {}
    for name, field in known.items():
        if name in values:
            filled[name] = to_field(field, values[name])
        elif field.default is MISSING:
            filled[name] = zero(field)
    return cls(**filled)


def inner_type(field: Field[Any]) -> tuple[Any, bool]:
    """The type of a field without its optionality, and whether it is an array (then the type of its elements)."""
    kind: Any = field.type
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        kind = next(part for part in typing.get_args(kind) if part is not types.NoneType)
    if typing.get_origin(kind) is tuple:
        return typing.get_args(kind)[0], True
    return kind, False


def to_field(field: Field[Any], value: Any) -> Any:
    kind, is_array = inner_type(field)
    if value is None:
        return None
    if is_array:
        return tuple(to_value(field, kind, element) for element in value)
    return to_value(field, kind, value)


def to_value(field: Field[Any], kind: Any, value: Any) -> Any:
    if is_dataclass(kind):
        return to_entity(kind, value)
    if field.metadata.get("kafka_type") in ("timedelta_i32", "timedelta_i64"):
        return datetime.timedelta(milliseconds=value)
    return value


def zero(field: Field[Any]) -> Any:
    kind, is_array = inner_type(field)
    if is_array:
        return ()
    if is_dataclass(kind):
        return None if type(None) in typing.get_args(field.type) else to_entity(kind, {})
    kafka_type = field.metadata.get("kafka_type")
    if type(None) in typing.get_args(field.type):
        return None
    return to_value(field, kind, ZERO_BY_TYPE.get(str(kafka_type), 0))


def to_plain(value: Any) -> Any:
    """Plain namespaces, lists and integers from what kio read."""
    if isinstance(value, ErrorCode | uuid.UUID):
        return value
    if isinstance(value, datetime.timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, tuple):
        return [to_plain(element) for element in value]
    if is_dataclass(value):
        return types.SimpleNamespace(**{field.name: to_plain(getattr(value, field.name)) for field in fields(value)})
    return value
