"""Messages to bytes and back, for one version at a time.

For each pair of class and version the field table is turned into Python source once, compiled, and kept: a writer that
appends parts to a list, and a reader that walks a buffer. Each is one function, whatever structs lie within the
message, and runs of fixed-width fields become one `struct` call. This is what makes a pure Python server fast enough;
the messages themselves stay plain declarations.

Reading trusts nothing: every length is checked against what is left of the buffer before anything is allocated, and
whatever does not fit raises `MalformedMessage`. A null where the version has no null is malformed too. Unknown tagged
fields are skipped. A field that the version does not have is not written, whatever its value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, ParamSpec, TypeVar

from millstream.wire.message import Field, Message

M = TypeVar("M", bound=Message)
P = ParamSpec("P")
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
_WRITERS: dict[tuple[type[Message], int], Writer] = {}
_READERS: dict[tuple[type[Message], int], Reader] = {}
SIZES = {kind: struct.calcsize(">" + code) for kind, code in FIXED.items()} | {"uuid": 16}


class MalformedMessage(ValueError):  # noqa: N818 - it is a message that is malformed, not an error of ours
    """The peer's bytes are not the message they claim to be."""


def encode(message: Message, version: int) -> bytes:
    """The bytes of a message in one version."""
    return b"".join(encode_parts(message, version))


def encode_parts(message: Message, version: int) -> list[Part]:
    """As `encode`, but not yet joined: `records` stay the objects they are."""
    parts: list[Part] = []
    writer_for(type(message), version)(message, parts.append)
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
    return reader_for(cls, version)(view, position, len(view))


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
    value = view[position]
    if value < 0x80:
        return value, position + 1
    value &= 0x7F
    for shift in (7, 14, 21, 28):
        position += 1
        byte = view[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position + 1
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


def _unreadable(name: str, end: int, error: Exception) -> MalformedMessage:
    if isinstance(error, UnicodeDecodeError):
        return MalformedMessage(f"{name} has a string that is not UTF-8")
    return MalformedMessage(f"{name} is cut short at {end} bytes")


def _null(name: str) -> MalformedMessage:
    return MalformedMessage(f"{name} is null, which this version does not allow")


# --- the source of a function -----------------------------------------------------------------------------------------


class _Source:
    """Lines of a function under construction, and the objects it refers to."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._bound: dict[str, Any] = {}
        self._locals = 0

    def add(self, depth: int, line: str) -> None:
        self._lines.append("    " * depth + line)

    def bind(self, value: Any) -> str:
        """The name under which the function finds an object."""
        name = f"_{len(self._bound)}"
        self._bound[name] = value
        return name

    def local(self) -> str:
        """A local variable that nothing else in the function uses."""
        self._locals += 1
        return f"v{self._locals}"

    def build(self, head: str) -> Any:
        scope = {**globals(), **self._bound}
        exec("\n".join([head, *self._lines]), scope)
        return scope["function"]


def _fields(cls: type[Message], version: int, *, tagged: bool) -> list[Field]:
    return [
        field
        for field in cls.FIELDS
        if _within(field.versions, version) and (field.tag >= 0 and _within(field.tagged, version)) == tagged
    ]


def _runs(fields: list[Field]) -> Iterator[tuple[list[Field], struct.Struct | None]]:
    """Fields of fixed width that lie side by side, with their layout; every other field by itself."""
    for fixed, group in groupby(fields, lambda field: field.kind in FIXED and not field.array):
        if fixed:
            run = list(group)
            yield run, struct.Struct(">" + "".join(FIXED[field.kind] for field in run))
        else:
            yield from (([field], None) for field in group)


# --- makers ---------------------------------------------------------------------------------------------------------


def maker_of(cls: Callable[P, M]) -> Callable[P, M]:
    """The class as a plain function: Python packs the named arguments of a class into a dictionary, which costs more
    than to set them. For messages that are made by the thousand."""
    assert isinstance(cls, type)
    assert issubclass(cls, Message)
    source = _Source()
    blank = cls()
    parameters: list[str] = []
    source.add(1, f"m = _new({source.bind(cls)})")
    for field in cls.FIELDS:
        default = getattr(blank, field.name)
        if isinstance(default, list | Message):
            parameters.append(f"{field.name}=None")
            source.add(1, f"m.{field.name} = {_unset(source, default)} if {field.name} is None else {field.name}")
        else:
            parameters.append(f"{field.name}={source.bind(default)}")
            source.add(1, f"m.{field.name} = {field.name}")
    source.add(1, "return m")
    maker: Callable[P, M] = source.build(f"def function(*, {', '.join(parameters)}):")
    return maker


# --- writers --------------------------------------------------------------------------------------------------------


def writer_for(cls: type[Message], version: int) -> Writer:
    """The compiled writer of a message in one version: `(message, append)`."""
    writer = _WRITERS.get((cls, version))
    if writer is None:
        source = _Source()
        _write_struct(source, 1, cls, "m", version, is_flexible(cls, version))
        writer = _WRITERS[cls, version] = source.build("def function(m, w):")
    return writer


def _write_struct(source: _Source, depth: int, cls: type[Message], value: str, version: int, flexible: bool) -> None:
    for run, layout in _runs(_fields(cls, version, tagged=False)):
        if layout is None:
            _write_field(source, depth, run[0], f"{value}.{run[0].name}", version, flexible)
        else:
            names = ", ".join(f"{value}.{field.name}" for field in run)
            source.add(depth, f"w({source.bind(layout.pack)}({names}))")
    if flexible:
        _write_tags(source, depth, _fields(cls, version, tagged=True), value, version)
    else:
        source.add(depth, "pass")  # a version may have no fields at all


def _write_field(source: _Source, depth: int, field: Field, value: str, version: int, flexible: bool) -> None:
    if field.flexible is not None:
        flexible = _within(field.flexible, version)
    if field.array:
        _write_array(source, depth, field, value, version, flexible)
    elif field.kind == "struct":
        assert field.struct is not None
        name = source.local()
        source.add(depth, f"{name} = {value}")
        if _within(field.nullable, version):
            # Null is -1, but 0 in a tagged field (a varint there).
            null = "b'\\x00'" if field.tag >= 0 else "b'\\xff'"
            source.add(depth, f"if {name} is None: w({null})")
            source.add(depth, "else:")
            depth += 1
            source.add(depth, "w(b'\\x01')")
        _write_struct(source, depth, field.struct, name, version, flexible)
    else:
        _write_value(source, depth, field.kind, value, flexible)


def _write_value(source: _Source, depth: int, kind: str, value: str, flexible: bool) -> None:
    if kind == "uuid":
        source.add(depth, f"w({value})")
    elif kind == "string":
        source.add(depth, f"w({'_write_compact_string' if flexible else '_write_string'}({value}))")
    elif kind in ("bytes", "records"):
        name = source.local()
        source.add(depth, f"{name} = {value}")
        # A fetch of many partitions is answered with nothing for most of them.
        empty = "b'\\x01'" if flexible else "b'\\x00\\x00\\x00\\x00'"
        source.add(depth, f"if {name} == b'': w({empty})")
        source.add(depth, f"else: {'_write_compact_bytes' if flexible else '_write_bytes'}({name}, w)")
    else:
        pack = struct.Struct(">" + FIXED[kind]).pack
        source.add(depth, f"w({source.bind(pack)}({value}))")


def _write_array(source: _Source, depth: int, field: Field, value: str, version: int, flexible: bool) -> None:
    items, item = source.local(), source.local()
    source.add(depth, f"{items} = {value}")
    if _within(field.nullable, version):
        null = "b'\\x00'" if flexible else "b'\\xff\\xff\\xff\\xff'"
        source.add(depth, f"if {items} is None: w({null})")
        source.add(depth, "else:")
        depth += 1
    source.add(depth, f"w({f'uvarint(len({items}) + 1)' if flexible else f'_INT32.pack(len({items}))'})")
    if field.kind in FIXED:
        source.add(depth, f"w(struct.pack('>%d{FIXED[field.kind]}' % len({items}), *{items}))")
        return
    source.add(depth, f"for {item} in {items}:")
    if field.kind == "struct":
        assert field.struct is not None
        _write_struct(source, depth + 1, field.struct, item, version, flexible)
    else:
        _write_value(source, depth + 1, field.kind, item, flexible)


def _write_tags(source: _Source, depth: int, fields: list[Field], value: str, version: int) -> None:
    if not fields:
        source.add(depth, "w(b'\\x00')")
        return
    fields = sorted(fields, key=lambda field: field.tag)
    conditions = [_differs_from_default(source, field, f"{value}.{field.name}") for field in fields]
    source.add(depth, f"if not ({' or '.join(conditions)}): w(b'\\x00')")
    source.add(depth, "else:")
    depth += 1
    source.add(depth, "tags = []")
    for field, condition in zip(fields, conditions, strict=True):
        writer = source.bind(_tag_writer(field, version))
        source.add(depth, f"if {condition}: tags.append(({field.tag}, {writer}({value}.{field.name})))")
    source.add(depth, "w(uvarint(len(tags)))")
    source.add(depth, "for tag, raw in tags: w(uvarint(tag) + uvarint(len(raw)) + raw)")


def _differs_from_default(source: _Source, field: Field, value: str) -> str:
    if field.array:
        return value
    if field.kind == "struct":
        # The default of a nullable one is a struct of defaults, so null has to be said.
        return "True" if field.nullable[0] <= field.nullable[1] else f"{value} is not None"
    return f"{value} != {source.bind(field.default)}"


def _tag_writer(field: Field, version: int) -> Callable[[Any], bytes]:
    source = _Source()
    source.add(1, "parts = []; w = parts.append")
    _write_field(source, 1, field, "value", version, True)
    source.add(1, "return b''.join(parts)")
    writer: Callable[[Any], bytes] = source.build("def function(value):")
    return writer


# --- readers --------------------------------------------------------------------------------------------------------


def reader_for(cls: type[Message], version: int) -> Reader:
    """The compiled reader of a message in one version: `(view, position, end) -> (message, position)`."""
    reader = _READERS.get((cls, version))
    if reader is None:
        source = _Source()
        source.add(1, "try:")
        _read_struct(source, 2, cls, "m", version, is_flexible(cls, version))
        source.add(2, "return m, p")
        source.add(1, "except (struct.error, IndexError, UnicodeDecodeError) as error:")
        source.add(2, f"raise _unreadable('{cls.__name__} v{version}', end, error) from error")
        reader = _READERS[cls, version] = source.build("def function(b, p, end):")
    return reader


def _read_struct(source: _Source, depth: int, cls: type[Message], target: str, version: int, flexible: bool) -> None:
    """Field by field into a bare object: a call of the class with names for its arguments costs more than all of it."""
    source.add(depth, f"{target} = _new({source.bind(cls)})")
    read = _fields(cls, version, tagged=False)
    blank = cls()
    for field in cls.FIELDS:
        if field not in read:
            source.add(depth, f"{target}.{field.name} = {_unset(source, getattr(blank, field.name))}")
    for run, layout in _runs(read):
        if layout is None:
            _read_field(source, depth, run[0], f"{target}.{run[0].name}", version, flexible)
        else:
            names = ", ".join(f"{target}.{field.name}" for field in run)
            source.add(depth, f"{names}, = {source.bind(layout.unpack_from)}(b, p); p += {layout.size}")
    if flexible:
        _read_tags(source, depth, _fields(cls, version, tagged=True), blank, target, version)


def _unset(source: _Source, value: Any) -> str:
    """The value of a field that is not on the wire; lists and structs are new ones each time."""
    if isinstance(value, list):
        return "[]"
    return f"{source.bind(type(value))}()" if isinstance(value, Message) else source.bind(value)


def _read_field(source: _Source, depth: int, field: Field, target: str, version: int, flexible: bool) -> None:
    if field.flexible is not None:
        flexible = _within(field.flexible, version)
    nullable = _within(field.nullable, version)
    if field.array:
        _read_array(source, depth, field, target, version, flexible, nullable)
    elif field.kind == "struct":
        assert field.struct is not None
        name = source.local()
        if nullable:
            source.add(depth, f"present = b[p]; p += 1; {name} = None")
            source.add(depth, f"if {'present' if field.tag >= 0 else 'present < 128'}:")
        _read_struct(source, depth + nullable, field.struct, name, version, flexible)
        source.add(depth, f"{target} = {name}")
    else:
        _read_value(source, depth, field.kind, target, flexible, nullable, field.name)


def _read_length(source: _Source, depth: int, prefix: str, flexible: bool) -> None:
    if flexible:
        source.add(depth, "n = b[p] - 1; p += 1")
        source.add(depth, "if n >= 127: n, p = read_uvarint(b, p - 1); n -= 1")
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
    items, item = source.local(), source.local()
    source.add(depth, f"{target} = {items} = []")
    source.add(depth, "for _ in range(n):")
    if field.kind == "struct":
        assert field.struct is not None
        _read_struct(source, depth + 1, field.struct, item, version, flexible)
    else:
        _read_value(source, depth + 1, field.kind, item, flexible, False, field.name)
    source.add(depth + 1, f"{items}.append({item})")


def smallest_size(field: Field, version: int, flexible: bool) -> int:
    """How few bytes one element of an array can take: what bounds the elements a frame can make us allocate."""
    if field.kind in SIZES:
        return SIZES[field.kind]
    if field.kind != "struct":
        return 1 if flexible else 2 if field.kind == "string" else 4
    assert field.struct is not None
    size = 1 if flexible else 0
    for item in _fields(field.struct, version, tagged=False):
        if item.array:
            size += 1 if flexible else 4
        elif item.kind == "struct" and _within(item.nullable, version):
            size += 1
        else:
            size += smallest_size(item, version, flexible)
    return size


def _read_tags(source: _Source, depth: int, fields: list[Field], blank: Message, target: str, version: int) -> None:
    source.add(depth, "n = b[p]; p += 1")
    source.add(depth, "if n:")
    source.add(depth + 1, "if n >= 128: n, p = read_uvarint(b, p - 1)")
    if not fields:
        source.add(depth + 1, "p = _skip_tags(b, p, end, n)")
        return
    stop = source.local()
    source.add(depth + 1, "for _ in range(n):")
    source.add(depth + 2, "tag, p = read_uvarint(b, p)")
    source.add(depth + 2, "size, p = read_uvarint(b, p)")
    source.add(depth + 2, f"{stop} = p + _checked(size, p, end)")
    for index, field in enumerate(fields):
        value = f"{target}.{field.name}"
        source.add(depth + 2, f"{'if' if index == 0 else 'elif'} tag == {field.tag}:")
        _read_field(source, depth + 3, field, value, version, True)
        if field.array or field.kind == "struct":
            source.add(depth + 3, f"if {value} is None: {value} = {_unset(source, getattr(blank, field.name))}")
    source.add(depth + 2, f"p = {stop}")
