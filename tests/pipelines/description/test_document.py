"""YAML as data that knows its lines, with few surprises."""

from textwrap import dedent
from typing import Any

import pytest
import yaml

from millstream.pipelines.description.document import Document, Dumper, documents


def only(text: str, **environ: str) -> Document:
    (document,) = documents(dedent(text), environ)
    return document


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("on", "on"),
        ("off", "off"),
        ("no", "no"),
        ("y", "y"),
        ("null", None),
        ("~", None),
        ("", None),
        ("5", 5),
        ("-17", -17),
        ("007", "007"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1.2.3", "1.2.3"),
        ("2026-01-31", "2026-01-31"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
        ("'5'", "5"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ("=", "="),
    ],
)
def test_scalars(text: str, value: Any) -> None:
    found = only(f"a: {text}\n").data["a"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", ["on", "5", "true", "2026-01-31", "null"])
def test_keys_are_texts(text: str) -> None:
    assert only(f"{text}: 2\n").data == {text: 2}


def test_lines_of_keys_and_values() -> None:
    document = only(
        """\
        pipeline: p
        steps:
          - sql: |
              SELECT *
              FROM stream
          - lookup:
              {name: x,
               on: y}
        """
    )
    assert document.line(("pipeline",)) == 1
    assert document.line(("steps", 0, "sql")) == 3
    assert document.lines[("steps", 0, "sql")].text == 4
    assert document.line(("steps", 1, "lookup"), at_key=True) == 6
    assert document.line(("steps", 1, "lookup")) == 7
    assert document.line(("steps", 1, "lookup", "on")) == 8
    assert document.line(("steps", 1, "lookup", "missing", "deeper")) == 7
    assert document.known(("steps", 1, "lookup", "missing", "deeper")) == ("steps", 1, "lookup")


def test_several_documents_and_empty_ones() -> None:
    found = list(documents("---\na: 1\n---\n# nothing\n---\nb: 2\n", {}))
    assert [document.data for document in found] == [{"a": 1}, {"b": 2}]
    assert found[1].line(("b",)) == 6
    assert list(documents("# only a comment\n", {})) == []


def test_a_key_that_stands_twice() -> None:
    document = only("a: 1\nb: 2\na: 3\n")
    assert document.wrong == [(3, ("a",), "this stands twice, here and in line 1")]
    assert document.data["a"] == 1


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("a: !!python/name:os.system ''\n", "tags such as !!python/name:os.system are not possible here"),
        ("a: !secret x\n", "tags such as !secret are not possible here"),
        ("a: !!set {x: null}\n", "tags such as !!set are not possible here"),
        ("a: !!int x\n", "'x' is not a number"),
        ("? [a, b]\n: c\n", "a name must be a text"),
        ("a: &x\n  b: *x\n", "this contains itself"),
        ("a: {<<: 5}\n", "only a mapping can be merged with `<<`"),
    ],
)
def test_what_has_no_place_here(text: str, wrong: str) -> None:
    assert [message for _, _, message in only(text).wrong] == [wrong]


def test_anchors_and_merges() -> None:
    document = only(
        """\
        sinks:
          - &base {topic: a, value: text}
          - {<<: *base, topic: b}
          - {<<: [{key: k}, *base]}
          - *base
        """
    )
    assert document.data["sinks"] == [
        {"topic": "a", "value": "text"},
        {"topic": "b", "value": "text"},
        {"key": "k", "topic": "a", "value": "text"},
        {"topic": "a", "value": "text"},
    ]
    assert document.wrong == []


def test_variables_are_texts_and_never_yaml() -> None:
    document = only("a: ${A}\nb: 'x${B:-y}'\nc: $${A}\n${A}: d\n", A="{x: 1}")
    assert document.data == {"a": "{x: 1}", "b": "xy", "c": "${A}", "${A}": "d"}
    assert document.written == {("a",): "${A}", ("b",): "x${B:-y}", ("c",): "$${A}"}


def test_a_variable_that_is_not_set() -> None:
    ((line, way, message),) = only("a: 1\nb: ${NAEM}\n", NAME="x").wrong
    assert (line, way) == (2, ("b",))
    assert message == "NAEM is not set in the environment; did you mean `NAME`? (`${NAEM:-…}` would give a default)"


@pytest.mark.parametrize(
    "value", ["on", "yes", "5", "1e3", "true", "null", "", "~", "2026-01-31", "a: b", "#", " x", "a\nb\n", "- a", "<<"]
)
def test_what_is_written_is_read_as_the_same_text(value: str) -> None:
    text = yaml.dump({"on": value, "list": [value]}, Dumper=Dumper)
    assert only(text).data == {"on": value, "list": [value]}
    assert "'on':" not in text
