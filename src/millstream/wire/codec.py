"""Messages to bytes and back, for one version at a time.

For each pair of class and version the field table is turned into Python source once, compiled, and kept: a writer that
appends parts to a list, and a reader that walks a buffer. Runs of fixed-width fields become one `struct` call. This is
what makes a pure Python server fast enough; the messages themselves stay plain declarations.

Reading trusts nothing: every length is checked against what is left of the buffer before anything is allocated, and
whatever does not fit raises `MalformedMessage`. A null where the version has no null is malformed too. Unknown tagged
fields are skipped. A field that the version does not have is not written, whatever its value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeVar

from millstream.wire.message import Field, Message

M = TypeVar("M", bound=Message)
Part = Any
"""Bytes, or an object with a length that the connection knows how to send (a slice of a segment file)."""
Writer = Callable[[Any, Callable[[Part], None]], None]
Reader = Callable[[memoryview, int, int], tuple[Any, int]]

FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
}
_WRITERS: dict[tuple[type[Message], int, bool], Writer] = {}
_READERS: dict[tuple[type[Message], int, bool], Reader] = {}
_MESSAGE_WRITERS: dict[tuple[type[Message], int], Writer] = {}
_MESSAGE_READERS: dict[tuple[type[Message], int], Reader] = {}
SIZES = {kind: struct.calcsize(">" + code) for kind, code in FIXED.items()} | {"uuid": 16}


class MalformedMessage(ValueError):  # noqa: N818 - it is a message that is malformed, not an error of ours
    """The peer's bytes are not the message they claim to be."""


def encode(message: Message, version: int) -> bytes:
    """The bytes of a message in one version."""
    return b"".join(encode_parts(message, version))


def encode_parts(message: Message, version: int) -> list[Part]:
    """As `encode`, but not yet joined: `records` stay the objects they are."""
    parts: list[Part] = []
    write = _MESSAGE_WRITERS.get((type(message), version)) or _message_writer(type(message), version)
    write(message, parts.append)
    return parts


def decode(cls: type[M], data: bytes | memoryview, version: int) -> M:
    """The message in `data`, which must hold exactly that and nothing behind it."""
    message, position = decode_prefix(cls, data, version)
    if position != len(data):
        raise MalformedMessage(f"{cls.__name__} v{version} ends at byte {position} of {len(data)}")
    return message


def decode_prefix(cls: type[M], data: bytes | memoryview, version: int, position: int = 0) -> tuple[M, int]:
    """The message that starts at `position`, and where it ends. Byte fields of type `records` are views of `data`."""
    view = data if isinstance(data, memoryview) else memoryview(data)
    read = _MESSAGE_READERS.get((cls, version)) or _message_reader(cls, version)
    try:
        return read(view, position, len(view))
    except (struct.error, IndexError) as error:
        raise MalformedMessage(f"{cls.__name__} v{version} is cut short at {len(view)} bytes") from error
    except UnicodeDecodeError as error:
        raise MalformedMessage(f"{cls.__name__} v{version} has a string that is not UTF-8") from error


def _message_reader(cls: type[Message], version: int) -> Reader:
    reader = _MESSAGE_READERS[cls, version] = reader_for(cls, version, is_flexible(cls, version))
    return reader


def _message_writer(cls: type[Message], version: int) -> Writer:
    writer = _MESSAGE_WRITERS[cls, version] = writer_for(cls, version, is_flexible(cls, version))
    return writer


def is_flexible(cls: type[Message], version: int) -> bool:
    """Whether a version has compact lengths and tagged fields (KIP-482), and its header as well."""
    return cls.FLEXIBLE[0] <= version <= cls.FLEXIBLE[1]


def _within(versions: tuple[int, int], version: int) -> bool:
    return versions[0] <= version <= versions[1]


# --- primitives shared by the generated code ----------------------------------------------------------------------


def uvarint(value: int) -> bytes:
    """An unsigned varint, as compact lengths and tags are written."""
    if value < 0x80:
        return _SMALL[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_SMALL = [bytes((value,)) for value in range(128)]
_new = object.__new__
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


def read_uvarint(view: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 28:
            raise MalformedMessage("an unsigned varint has more than five bytes")


def _write_string(value: str | None) -> bytes:
    if value is None:
        return b"\xff\xff"
    raw = value.encode()
    return _INT16.pack(len(raw)) + raw


def _write_compact_string(value: str | None) -> bytes:
    if value is None:
        return b"\x00"
    raw = value.encode()
    return uvarint(len(raw) + 1) + raw


def _write_bytes(value: Any, write: Callable[[Part], None]) -> None:
    _write_payload(value, write, _INT32.pack)


def _compact_length(size: int) -> bytes:
    return uvarint(size + 1)


def _write_compact_bytes(value: Any, write: Callable[[Part], None]) -> None:
    _write_payload(value, write, _compact_length)


def _write_payload(value: Any, write: Callable[[Part], None], length: Callable[[int], bytes]) -> None:
    if value is None:
        write(length(-1))
    elif isinstance(value, list):
        write(length(sum(map(len, value))))
        for part in value:
            write(part)
    else:
        write(length(len(value)))
        write(value)


def _checked(size: int, position: int, end: int) -> int:
    """A length as it was read, if that many bytes are left; -1 (null) passes through."""
    if size < -1 or size > end - position:
        raise MalformedMessage(f"a length of {size} does not fit into the {end - position} bytes that are left")
    return size


def _too_many(count: int, position: int, end: int) -> MalformedMessage:
    return MalformedMessage(f"{count} elements do not fit into the {end - position} bytes that are left")


def _skip_tags(view: memoryview, position: int, end: int, count: int) -> int:
    for _ in range(count):
        _, position = read_uvarint(view, position)
        size, position = read_uvarint(view, position)
        position += _checked(size, position, end)
    return position


def _null(name: str) -> MalformedMessage:
    return MalformedMessage(f"{name} is null, which this version does not allow")


# --- writers --------------------------------------------------------------------------------------------------------


class _Source:
    """Lines of a function under construction, and the objects it refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}

    def add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def bind(self, value: Any) -> str:
        name = f"_{len(self.names)}"
        self.names[name] = value
        return name

    def build(self, head: str) -> Any:
        scope = {**globals(), **self.names}
        exec("\n".join([head, *self.lines]), scope)
        return scope["function"]


def _present(cls: type[Message], version: int, *, tagged: bool) -> list[Field]:
    return [
        field
        for field in cls.FIELDS
        if _within(field.versions, version) and (field.tag >= 0 and _within(field.tagged, version)) == tagged
    ]


def writer_for(cls: type[Message], version: int, flexible: bool) -> Writer:
    """The compiled writer of one class in one version: `(message, append)`."""
    writer = _WRITERS.get((cls, version, flexible))
    if writer is None:
        writer = _WRITERS[cls, version, flexible] = _compile_writer(cls, version, flexible)
    return writer


def _compile_writer(cls: type[Message], version: int, flexible: bool) -> Writer:
    source = _Source()
    run: list[Field] = []

    def close_run() -> None:
        if run:
            pack = struct.Struct(">" + "".join(FIXED[field.kind] for field in run)).pack
            source.add(1, f"w({source.bind(pack)}({', '.join('m.' + field.name for field in run)}))")
            run.clear()

    for field in _present(cls, version, tagged=False):
        if field.kind in FIXED and not field.array:
            run.append(field)
            continue
        close_run()
        _write_field(source, 1, field, f"m.{field.name}", version, flexible)
    close_run()
    if flexible:
        _write_tags(source, _present(cls, version, tagged=True), version)
    source.add(1, "return None")
    writer: Writer = source.build("def function(m, w):")
    return writer


def _write_field(source: _Source, depth: int, field: Field, value: str, version: int, flexible: bool) -> None:
    if field.flexible is not None:
        flexible = _within(field.flexible, version)
    if field.array:
        _write_array(source, depth, field, value, version, flexible)
    elif field.kind == "struct":
        if _within(field.nullable, version):
            # Null is -1, but 0 in a tagged field (a varint there).
            null = "b'\\x00'" if field.tag >= 0 else "b'\\xff'"
            source.add(depth, f"if {value} is None: w({null})")
            source.add(depth, "else:")
            source.add(depth + 1, "w(b'\\x01')")
            depth += 1
        source.add(depth, f"{source.bind(_struct_writer(field, version, flexible))}({value}, w)")
    else:
        _write_value(source, depth, field.kind, value, flexible)


def _struct_writer(field: Field, version: int, flexible: bool) -> Writer:
    assert field.struct is not None
    return writer_for(field.struct, version, flexible)


def _write_value(source: _Source, depth: int, kind: str, value: str, flexible: bool) -> None:
    if kind == "uuid":
        source.add(depth, f"w({value})")
    elif kind == "string":
        source.add(depth, f"w({'_write_compact_string' if flexible else '_write_string'}({value}))")
    elif kind in ("bytes", "records"):
        source.add(depth, f"{'_write_compact_bytes' if flexible else '_write_bytes'}({value}, w)")
    else:
        pack = struct.Struct(">" + FIXED[kind]).pack
        source.add(depth, f"w({source.bind(pack)}({value}))")


def _write_array(source: _Source, depth: int, field: Field, value: str, version: int, flexible: bool) -> None:
    null = "b'\\x00'" if flexible else "b'\\xff\\xff\\xff\\xff'"
    if _within(field.nullable, version):
        source.add(depth, f"if {value} is None: w({null})")
        source.add(depth, "else:")
        depth += 1
    length = f"uvarint(len({value}) + 1)" if flexible else f"_INT32.pack(len({value}))"
    source.add(depth, f"w({length})")
    if field.kind in FIXED:
        source.add(depth, f"w(struct.pack('>%d{FIXED[field.kind]}' % len({value}), *{value}))")
        return
    source.add(depth, f"for item in {value}:")
    if field.kind == "struct":
        source.add(depth + 1, f"{source.bind(_struct_writer(field, version, flexible))}(item, w)")
    else:
        _write_value(source, depth + 1, field.kind, "item", flexible)


def _write_tags(source: _Source, fields: list[Field], version: int) -> None:
    if not fields:
        source.add(1, "w(b'\\x00')")
        return
    fields = sorted(fields, key=lambda field: field.tag)
    conditions = [_differs_from_default(source, field) for field in fields]
    source.add(1, f"if not ({' or '.join(conditions)}):")
    source.add(2, "w(b'\\x00')")
    source.add(2, "return None")
    source.add(1, "tags = []")
    for field, condition in zip(fields, conditions, strict=True):
        source.add(1, f"if {condition}:")
        source.add(2, f"tags.append(({field.tag}, {source.bind(_tag_writer(field, version))}(m.{field.name})))")
    source.add(1, "w(uvarint(len(tags)))")
    source.add(1, "for tag, raw in tags: w(uvarint(tag) + uvarint(len(raw)) + raw)")


def _differs_from_default(source: _Source, field: Field) -> str:
    if field.array:
        return f"m.{field.name}"
    if field.kind == "struct":
        # The default of a nullable one is a struct of defaults, so null has to be said.
        return "True" if field.nullable[0] <= field.nullable[1] else f"m.{field.name} is not None"
    return f"m.{field.name} != {source.bind(field.default)}"


def _tag_writer(field: Field, version: int) -> Callable[[Any], bytes]:
    source = _Source()
    source.add(1, "parts = []; w = parts.append")
    _write_field(source, 1, field, "value", version, True)
    source.add(1, "return b''.join(parts)")
    writer: Callable[[Any], bytes] = source.build("def function(value):")
    return writer


# --- readers --------------------------------------------------------------------------------------------------------


def reader_for(cls: type[Message], version: int, flexible: bool) -> Reader:
    """The compiled reader of one class in one version: `(view, position, end) -> (message, position)`."""
    reader = _READERS.get((cls, version, flexible))
    if reader is None:
        reader = _READERS[cls, version, flexible] = _compile_reader(cls, version, flexible)
    return reader


def _compile_reader(cls: type[Message], version: int, flexible: bool) -> Reader:
    source = _Source()
    run: list[Field] = []

    def close_run() -> None:
        if run:
            layout = struct.Struct(">" + "".join(FIXED[field.kind] for field in run))
            names = ", ".join(f"v_{field.name}" for field in run)
            source.add(1, f"{names}, = {source.bind(layout.unpack_from)}(b, p)")
            source.add(1, f"p += {layout.size}")
            run.clear()

    plain = _present(cls, version, tagged=False)
    tagged = _present(cls, version, tagged=True) if flexible else []
    for field in plain:
        if field.kind in FIXED and not field.array:
            run.append(field)
            continue
        close_run()
        _read_field(source, 1, field, version, flexible)
    close_run()
    if flexible:
        _read_tags(source, tagged, version)
    # Set field by field: a call of the class with names for its arguments costs more than all of this.
    source.add(1, f"m = _new({source.bind(cls)})")
    blank = cls()
    for field in cls.FIELDS:
        unset = _unset(source, getattr(blank, field.name))
        if field in plain:
            source.add(1, f"m.{field.name} = v_{field.name}")
        elif field in tagged:
            source.add(1, f"m.{field.name} = {unset} if v_{field.name} is None else v_{field.name}")
        else:
            source.add(1, f"m.{field.name} = {unset}")
    source.add(1, "return m, p")
    reader: Reader = source.build("def function(b, p, end):")
    return reader


def _unset(source: _Source, value: Any) -> str:
    """The value of a field that is not on the wire; lists and structs are new ones each time."""
    if isinstance(value, list):
        return "[]"
    return f"{source.bind(type(value))}()" if isinstance(value, Message) else source.bind(value)


def _read_field(source: _Source, depth: int, field: Field, version: int, flexible: bool) -> None:
    target = f"v_{field.name}"
    if field.flexible is not None:
        flexible = _within(field.flexible, version)
    nullable = _within(field.nullable, version)
    if field.array:
        _read_array(source, depth, field, target, version, flexible, nullable)
    elif field.kind == "struct":
        assert field.struct is not None
        read = source.bind(reader_for(field.struct, version, flexible))
        if nullable:
            source.add(depth, "present = b[p]; p += 1")
            source.add(depth, f"{target} = None")
            there = "present" if field.tag >= 0 else "present < 128"
            source.add(depth, f"if {there}: {target}, p = {read}(b, p, end)")
        else:
            source.add(depth, f"{target}, p = {read}(b, p, end)")
    else:
        _read_value(source, depth, field.kind, target, flexible, nullable, field.name)


def _read_length(source: _Source, depth: int, prefix: str, flexible: bool) -> None:
    if flexible:
        source.add(depth, "n = b[p]; p += 1")
        source.add(depth, "if n >= 128: n, p = read_uvarint(b, p - 1)")
        source.add(depth, "n -= 1")
    else:
        size = {"_INT16": 2, "_INT32": 4}[prefix]
        source.add(depth, f"(n,) = {prefix}.unpack_from(b, p); p += {size}")


def _read_value(source: _Source, depth: int, kind: str, target: str, flexible: bool, nullable: bool, name: str) -> None:
    if kind == "uuid":
        source.add(depth, f"_checked(16, p, end); {target} = bytes(b[p : p + 16]); p += 16")
        return
    if kind in FIXED:
        layout = struct.Struct(">" + FIXED[kind])
        source.add(depth, f"({target},) = {source.bind(layout.unpack_from)}(b, p); p += {layout.size}")
        return
    _read_length(source, depth, "_INT16" if kind == "string" else "_INT32", flexible)
    source.add(depth, "if n < 0 or n > end - p:")
    source.add(depth + 1, "_checked(n, p, end)")
    source.add(depth + 1, f"{target} = None" if nullable else f"raise _null({name!r})")
    source.add(depth, "else:")
    value = {"string": "str(b[p : p + n], 'utf-8')", "bytes": "bytes(b[p : p + n])", "records": "b[p : p + n]"}[kind]
    source.add(depth + 1, f"{target} = {value}; p += n")


def _read_array(
    source: _Source, depth: int, field: Field, target: str, version: int, flexible: bool, nullable: bool
) -> None:
    _read_length(source, depth, "_INT32", flexible)
    smallest = smallest_size(field, version, flexible)
    source.add(depth, f"if n < -1 or n * {smallest} > end - p: raise _too_many(n, p, end)")
    source.add(depth, "if n < 0:")
    source.add(depth + 1, f"{target} = None" if nullable else f"raise _null({field.name!r})")
    source.add(depth, "else:")
    depth += 1
    if field.kind in FIXED:
        source.add(depth, f"{target} = list(struct.unpack_from('>%d{FIXED[field.kind]}' % n, b, p))")
        source.add(depth, f"p += n * {SIZES[field.kind]}")
        return
    source.add(depth, f"{target} = []; items = {target}")
    if field.kind == "struct":
        assert field.struct is not None
        read = source.bind(reader_for(field.struct, version, flexible))
        source.add(depth, "for _ in range(n):")
        source.add(depth + 1, f"item, p = {read}(b, p, end)")
        source.add(depth + 1, "items.append(item)")
    else:
        source.add(depth, "for _ in range(n):")
        _read_value(source, depth + 1, field.kind, "item", flexible, False, field.name)
        source.add(depth + 1, "items.append(item)")


def smallest_size(field: Field, version: int, flexible: bool) -> int:
    """How few bytes one element of an array can take: what bounds the elements a frame can make us allocate."""
    if field.kind in SIZES:
        return SIZES[field.kind]
    if field.kind != "struct":
        return 1 if flexible else 2 if field.kind == "string" else 4
    assert field.struct is not None
    size = 1 if flexible else 0
    for item in _present(field.struct, version, tagged=False):
        if item.array:
            size += 1 if flexible else 4
        elif item.kind == "struct" and _within(item.nullable, version):
            size += 1
        else:
            size += smallest_size(item, version, flexible)
    return size


def _read_tags(source: _Source, fields: list[Field], version: int) -> None:
    for field in fields:
        default = f"{source.bind(field.default)}"
        if field.kind == "struct" or field.array:
            default = "None"
        source.add(1, f"v_{field.name} = {default}")
    source.add(1, "n = b[p]; p += 1")
    source.add(1, "if n:")
    source.add(2, "if n >= 128: n, p = read_uvarint(b, p - 1)")
    if not fields:
        source.add(2, "p = _skip_tags(b, p, end, n)")
        return
    source.add(2, "for _ in range(n):")
    source.add(3, "tag, p = read_uvarint(b, p)")
    source.add(3, "size, p = read_uvarint(b, p)")
    source.add(3, "stop = p + _checked(size, p, end)")
    for index, field in enumerate(fields):
        source.add(3, f"{'if' if index == 0 else 'elif'} tag == {field.tag}:")
        _read_field(source, 4, field, version, True)
    source.add(3, "p = stop")
