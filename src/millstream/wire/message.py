"""What every protocol message is made of: the base class, the field table, and Kafka's names for types.

The classes in `wire.messages` are generated (see `tools/generate_messages.py`). Each is a superset of all versions of
its message: a field carries the range of versions in which it is on the wire, and `wire.codec` turns that table into a
reader and a writer for one version the first time that version is seen. Handlers therefore never branch on versions
only to fill a field.

A struct that is a tagged field is None when it is not sent.

Values: integers and error codes are `int`, a uuid is 16 raw bytes, `records` may also be a list of parts that the
connection sends as they are (file slices), so that a fetch never copies what it serves.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, ClassVar, NamedTuple

ZERO_UUID = bytes(16)
NEVER = (1, 0)
"""A version range that contains no version."""


class Field(NamedTuple):
    """One field of a message or of a struct within it, and the versions in which it exists."""

    name: str
    kind: str
    """A primitive (`int32`, `string`, `records`, ...) or `struct`."""
    versions: tuple[int, int]
    nullable: tuple[int, int] = NEVER
    array: bool = False
    tag: int = -1
    tagged: tuple[int, int] = NEVER
    default: Any = None
    struct: type[Message] | None = None
    flexible: tuple[int, int] | None = None
    """Overrides the message's flexible versions for this field alone (only the client id of the request header)."""


class Message:
    """Base of all generated messages and structs. Compares and prints by value."""

    __slots__ = ()

    FIELDS: ClassVar[tuple[Field, ...]] = ()
    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[tuple[int, int]] = NEVER

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in self.FIELDS)

    def __repr__(self) -> str:
        values = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in self.FIELDS)
        return f"{type(self).__name__}({values})"


def uuid_text(uuid: bytes) -> str:
    """Kafka's way to print a uuid: URL-safe base64 without padding."""
    return urlsafe_b64encode(uuid).decode().rstrip("=")


def uuid_from_text(text: str) -> bytes:
    """The inverse of `uuid_text`; ValueError if it is not a uuid."""
    raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(raw) != 16:
        raise ValueError(f"{text!r} is not a uuid: it has {len(raw)} bytes, not 16")
    return raw
