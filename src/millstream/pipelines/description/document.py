"""A YAML file as data that knows its lines.

What YAML 1.1 makes of words is left out on purpose: only `true` and `false` are booleans, so `on:` and `no` stay texts,
as do moments and all keys. A key that stands twice is a mistake, as is any tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

from millstream.pipelines.description.variables import VariableError, has_variables, replaced

Way = tuple[str | int, ...]
"""The way to a value: `("steps", 1, "lookup", "path")`."""

NAMESPACE = "tag:yaml.org,2002:"
TAGS = tuple(f"{NAMESPACE}{name}" for name in ("str", "null", "bool", "int", "float", "seq", "map"))
STR, NULL, BOOL, INT, FLOAT = TAGS[:5]
MERGE = "<<"
SCALARS = (
    (NULL, re.compile(r"~|null|Null|NULL|"), ["~", "n", "N", ""]),
    (BOOL, re.compile(r"true|True|TRUE|false|False|FALSE"), list("tTfF")),
    (INT, re.compile(r"[-+]?(0|[1-9][0-9]*)"), list("-+0123456789")),
    (
        FLOAT,
        re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+"),
        list("-+.0123456789"),
    ),
)
"""What an unquoted text can mean, with the characters it can begin with."""


class Loader(yaml.SafeLoader):
    """YAML with few surprises."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own way of declaring it


class Dumper(yaml.SafeDumper):
    """Writes texts so that `Loader` reads them as texts, several lines as a block."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own way of declaring it


for _tag, _pattern, _first in SCALARS:
    for _class in (Loader, Dumper):
        _class.add_implicit_resolver(_tag, re.compile(f"(?:{_pattern.pattern})$"), _first)
Dumper.add_implicit_resolver(f"{NAMESPACE}merge", re.compile(f"{MERGE}$"), ["<"])  # a plain text of it is quoted


class Lines(NamedTuple):
    """Lines from 1 on: of the key, of the value, and of the first line of a text in block style."""

    key: int
    value: int
    text: int | None = None


class Wrong(NamedTuple):
    """Something that has no place in a file: its line, the way to it, and what it is."""

    line: int
    way: Way
    message: str


@dataclass
class Document:
    """One YAML document: its data, and for each value its lines, its text as it stands there, and what was replaced."""

    data: Any = None
    lines: dict[Way, Lines] = field(default_factory=dict)
    texts: dict[Way, str] = field(default_factory=dict)
    """Unquoted scalars that are no texts, as they stand in the file."""
    written: dict[Way, str] = field(default_factory=dict)
    """Texts with variables, before they were replaced."""
    wrong: list[Wrong] = field(default_factory=list)

    def line(self, way: Way, at_key: bool = False) -> int:
        """The line of a value, or of the nearest thing around it."""
        lines = self.lines[self.known(way)]
        return lines.key if at_key else lines.value

    def known(self, way: Way) -> Way:
        """The longest part of the way that is in the file."""
        while way not in self.lines:
            way = way[:-1]
        return way


def documents(text: str, environ: Mapping[str, str]) -> Iterator[Document]:
    """The documents of a file; yaml.YAMLError if it is no YAML. Empty documents are left out."""
    for node in yaml.compose_all(text, Loader):
        if node is not None and not (isinstance(node, yaml.ScalarNode) and node.tag == NULL):
            document = Document()
            document.data = _Builder(document, environ).build(node, (), node.start_mark.line + 1)
            yield document


class _Builder:
    """Walks YAML's nodes once."""

    def __init__(self, document: Document, environ: Mapping[str, str]) -> None:
        self._document = document
        self._environ = environ
        self._open: list[yaml.Node] = []

    def build(self, node: yaml.Node, way: Way, key_line: int) -> Any:
        line = node.start_mark.line + 1
        block = isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")
        self._document.lines[way] = Lines(key_line, line, line + 1 if block else None)
        if any(node is outer for outer in self._open):
            self._wrong(node, way, "this contains itself")
            return None
        if node.tag not in TAGS:
            self._wrong(node, way, f"tags such as {node.tag.replace(NAMESPACE, '!!')} are not possible here")
        self._open.append(node)
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, way)
            if isinstance(node, yaml.SequenceNode):
                return [self._item(item, (*way, index)) for index, item in enumerate(node.value)]
            assert isinstance(node, yaml.ScalarNode)
            return self._scalar(node, way)
        finally:
            self._open.pop()

    def _item(self, node: yaml.Node, way: Way) -> Any:
        return self.build(node, way, node.start_mark.line + 1)

    def _mapping(self, node: yaml.MappingNode, way: Way) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: list[yaml.Node] = []
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._wrong(key_node, way, "a name must be a text")
            elif key_node.value == MERGE and key_node.style is None:
                merged += value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
            elif key_node.value in found:
                first = self._document.lines[(*way, key_node.value)].key
                self._wrong(key_node, (*way, key_node.value), f"this stands twice, here and in line {first}")
            else:
                found[key_node.value] = self.build(value_node, (*way, key_node.value), key_node.start_mark.line + 1)
        for other in merged:
            if not isinstance(other, yaml.MappingNode):
                self._wrong(other, way, f"only a mapping can be merged with `{MERGE}`")
                continue
            for key_node, value_node in other.value:
                if isinstance(key_node, yaml.ScalarNode) and key_node.value not in found:
                    found[key_node.value] = self.build(value_node, (*way, key_node.value), key_node.start_mark.line + 1)
        return found

    def _scalar(self, node: yaml.ScalarNode, way: Way) -> Any:
        text: str = node.value
        if has_variables(text):
            self._document.written[way] = text
            try:
                return replaced(text, self._environ)
            except VariableError as error:
                self._wrong(node, way, str(error))
                return text
        if node.tag not in (NULL, BOOL, INT, FLOAT):
            return text
        self._document.texts[way] = text
        if node.tag == NULL:
            return None
        if node.tag == BOOL:
            return text.lower() == "true"
        try:
            return int(text) if node.tag == INT else float(text)
        except ValueError:  # only with a tag before it
            self._wrong(node, way, f"{text!r} is not a number")
            return text

    def _wrong(self, node: yaml.Node, way: Way, message: str) -> None:
        self._document.wrong.append(Wrong(node.start_mark.line + 1, way, message))
