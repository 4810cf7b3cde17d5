"""The parts of `docs/pipelines` that are printed from the descriptions: tables of options, and the reference.

A line `<!-- options: TopicSource -->` in a page is followed by the table of that element's fields, to `<!-- end -->`.
The name is that of the class in `millstream.pipelines`. The reference lists all elements and finds their pages by these
lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pydantic.fields import FieldInfo

from millstream.pipelines.description.element import Element
from millstream.pipelines.description.pipeline import BackPressure, Pipeline
from millstream.pipelines.description.sinks import SINKS
from millstream.pipelines.description.sources import SOURCES, Table
from millstream.pipelines.description.spans import short_span
from millstream.pipelines.description.steps import STEPS, Window
from millstream.pipelines.description.words import field_words

FOLDER = Path(__file__).parent.parent / "docs" / "pipelines"
REFERENCE = "reference.md"
GROUPS: dict[str, dict[str, type[Element]]] = {
    "Sources": {**SOURCES},
    "Tables": {"tables": Table},
    "Steps": {**STEPS},
    "Sinks": {**SINKS},
    "The pipeline": {"pipeline": Pipeline, "back_pressure": BackPressure, "window": Window},
}
"""Heading -> the word that tells in YAML -> the element."""
ELEMENTS = {model.__name__: model for group in GROUPS.values() for model in group.values()}
MARKER = re.compile(r"^<!-- options: (\S+) -->\n(?:.*?^<!-- end -->\n)?", re.M | re.S)
HEADING = re.compile(r"^#+ (.+)$", re.M)
_INTRO = {
    "Sources": "A `source` is told by its first field. Several, under `sources`, have names.",
    "Tables": "Tables stand beside the stream, under `tables`, by name.",
    "Steps": "A step is a name and its fields, or only the value of the first field: `- filter: status >= 400`.",
    "Sinks": "A sink of `sinks` is told by its first field.",
    "The pipeline": "The whole, and parts of it that have fields of their own.",
}


class Home(NamedTuple):
    """Where an element is described: a page and the heading above its table."""

    page: str
    anchor: str


def pages() -> list[Path]:
    """The pages that may have tables in them; the reference is printed as a whole."""
    return sorted(page for page in FOLDER.rglob("*.md") if page.name != REFERENCE)


def with_tables(text: str) -> str:
    """The page with its tables as they should be."""

    def table(match: re.Match[str]) -> str:
        model = ELEMENTS.get(match[1])
        if model is None:
            raise ValueError(f"<!-- options: {match[1]} -->: there is no such element; there are {', '.join(ELEMENTS)}")
        return "\n".join([f"<!-- options: {match[1]} -->", *option_table(model), "<!-- end -->", ""])

    return MARKER.sub(table, text)


def homes() -> dict[str, Home]:
    """Where each element is described; the first page that does."""
    found: dict[str, Home] = {}
    for page in pages():
        text = page.read_text()
        for match in MARKER.finditer(text):
            above = HEADING.findall(text, 0, match.start())
            found.setdefault(match[1], Home(page.relative_to(FOLDER).as_posix(), _anchor(above[-1]) if above else ""))
    return found


def _anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def option_table(model: type[Element]) -> list[str]:
    """The fields of an element: what each takes, its default and its meaning."""
    lines = ["| field | takes | default | meaning |", "|---|---|---|---|"]
    for name, field in _ordered(model):
        meaning = (field.description or "").replace("|", "\\|")
        if not meaning:
            raise ValueError(f"{model.__name__}.{name} has no description")
        takes = field_words(field).replace("|", "\\|")
        lines.append(f"| `{name}` | {takes} | {_default(field)} | {meaning} |")
    return lines


def _ordered(model: type[Element]) -> Iterator[tuple[str, FieldInfo]]:
    """First the field that tells, then the element's own, then those that it shares with others."""
    telling = next((tag for group in GROUPS.values() for tag, kind in group.items() if kind is model), "")
    inherited = {name for parent in model.__mro__[1:] if issubclass(parent, Element) for name in parent.model_fields}
    named = [(field.alias or name, field, name in inherited) for name, field in model.model_fields.items()]
    yield from ((name, field) for name, field, _ in sorted(named, key=lambda item: (item[0] != telling, item[2])))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be given"
    default: Any = field.get_default(call_default_factory=True)
    if default is None or default in ((), {}, "") or isinstance(default, Element):
        return ""
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, float):
        return f"`{short_span(default)}`"
    return f"`{default}`"


def reference_page() -> str:
    lines = [
        "# Reference",
        "",
        "Printed from the declarations in `src/millstream/pipelines/description` by `tools/generate_docs.py`. The",
        "[guide](index.md) says how it all goes together. In Python the classes of `millstream.pipelines` have the",
        "same fields, but for `pipeline`, which is `name`, and `with`, which is `with_`.",
    ]
    found = homes()
    for heading, group in GROUPS.items():
        lines += ["", f"## {heading}", "", _INTRO[heading], "", "| | class | what it is |", "|---|---|---|"]
        lines += [_entry(word, model, found.get(model.__name__)) for word, model in group.items()]
    return "\n".join([*lines, ""])


def _entry(word: str, model: type[Element], home: Home | None) -> str:
    name = f"`{word}`" if home is None else f"[`{word}`]({home.page}{f'#{home.anchor}' if home.anchor else ''})"
    meaning = " ".join((model.__doc__ or "").split("\n\n")[0].split()).replace("|", "\\|")
    return f"| {name} | `{model.__name__}` | {meaning} |"
