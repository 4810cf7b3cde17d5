"""How a record looks: a readable line, JSON, the raw value, or a template of the user's.

Text for people never sends control characters of a record to a terminal: they are shown as \\x1b and the like, as are
bytes that are not UTF-8. `raw` is exact, for pipes.
"""

from __future__ import annotations

import re
import string
import sys
from collections.abc import Callable, Mapping
from typing import Any

from millstream.cluster.answers import nearest
from millstream.cluster.errors import BadInput
from millstream.cluster.positions import time_text
from millstream.cluster.records_out import Record, json_line, text_of

Renderer = Callable[[Record], bytes]
FIELDS = ("topic", "partition", "offset", "timestamp", "time", "key", "value", "headers", "size")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def renderer(form: str | None, *, json: bool) -> Renderer:
    """What `--format` and `--json` ask for; BadInput if it cannot be understood."""
    if json and form not in (None, "json"):
        raise BadInput(f"--json and --format {form} contradict each other: give one of them")
    if json or form == "json":
        return lambda record: json_line(record).encode() + b"\n"
    if form is None:
        return _for_people(colour=sys.stdout.isatty())
    if form == "raw":
        return lambda record: (record.value or b"") + b"\n"
    if "{" in form:
        return _template(form)
    raise BadInput(
        f"--format: {form!r} is neither json nor raw nor a template{nearest(form, ('json', 'raw'))}; "
        "a template has fields, for example '{partition}/{offset} {key} {value}\\n'"
    )


def unescape(text: str) -> str:
    r"""`\t`, `\n`, `\0` and `\\` as a shell leaves them."""
    return re.sub(r"\\([ntr0\\])", lambda match: _ESCAPES[match[1]], text)


def safe(text: str) -> str:
    """The text without anything that a terminal would obey."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def _for_people(*, colour: bool) -> Renderer:
    dim, bold, plain = ("\x1b[2m", "\x1b[36m", "\x1b[0m") if colour else ("", "", "")

    def render(record: Record) -> bytes:
        where = f"{record.partition}:{record.offset}"
        key = "-" if record.key is None else safe(text_of(record.key) or '""')
        value = f"{dim}(null){plain}" if record.value is None else safe(text_of(record.value) or "")
        headers = " ".join(
            f"{safe(name)}={'(null)' if data is None else safe(text_of(data) or '')}" for name, data in record.headers
        )
        line = f"{dim}{where:<8} {time_text(record.timestamp)}{plain}  {bold}{key}{plain}  {value}"
        return (line + (f"  {dim}[{headers}]{plain}" if headers else "") + "\n").encode()

    return render


def _template(form: str) -> Renderer:
    text = unescape(form)
    try:
        parts = [(before, name, spec) for before, name, spec, _ in string.Formatter().parse(text)]
    except ValueError as error:
        raise BadInput(f"--format: {form!r} is not a template: {error}; {{{{ and }}}} stand for braces") from error
    for _, name, spec in parts:
        field = (name or "").split(".")[0]
        if name is not None and field not in FIELDS:
            known = ", ".join(FIELDS)
            raise BadInput(f"--format: there is no field {{{name}}}, there are {known}{nearest(field, FIELDS)}")
        _check_spec(form, spec)
    ending = "" if text.endswith("\n") else "\n"
    clean = safe if sys.stdout.isatty() else str

    def render(record: Record) -> bytes:
        values = _values(record)
        line = []
        for before, name, spec in parts:
            line.append(before)
            if name is not None:
                line.append(_padded(clean(_field(values, name)), spec))
        return ("".join(line) + ending).encode(errors="backslashreplace")

    return render


def _check_spec(form: str, spec: str | None) -> None:
    if spec and not re.fullmatch(r"[<>^]?\d{1,4}", spec):
        raise BadInput(f"--format: {spec!r} in {form!r} is not a width; write {{key:<20}} or {{offset:>8}}")


def _padded(text: str, spec: str | None) -> str:
    return format(text, spec) if spec else text


def _values(record: Record) -> dict[str, Any]:
    return {
        **record.names(),
        "time": time_text(record.timestamp),
        "size": len(record.key or b"") + len(record.value or b""),
    }


def _field(values: Mapping[str, Any], name: str) -> str:
    """`value`, or a field inside it: `value.user.id`."""
    import json

    from millstream.cluster.filters import field_of

    first, *path = name.split(".")
    found = values[first]
    for step in path:
        found = field_of(found, int(step) if step.isdigit() else step)
    if found is None:
        return ""
    if isinstance(found, dict) and first == "headers" and not path:
        return ",".join(f"{key}={'' if value is None else value}" for key, value in found.items())
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
