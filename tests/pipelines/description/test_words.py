"""What fields take, in words."""

from collections.abc import Callable
from typing import Any, Literal

import pytest

from millstream.pipelines import BackPressure, LookupStep, Pipeline, TopicSink, TopicSource
from millstream.pipelines.description.words import either, field_words, given_words, type_words


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (str, "a text"),
        (int, "a whole number"),
        (bool | int, "`true` or `false` or a whole number"),
        (str | None, "a text"),
        (Literal["a", "b", "c"], "`a`, `b` or `c`"),
        (dict[str, str], "texts by name"),
        (dict[str, dict[str, Any]], "values by name by name"),
        (tuple[str, ...], "a list of texts"),
        (Callable[..., Any], "a function"),
        (BackPressure, "a mapping of its fields"),
        (bytes, "<class 'bytes'>"),
    ],
)
def test_types(kind: Any, words: str) -> None:
    assert type_words(kind) == words


@pytest.mark.parametrize(
    ("model", "field", "words"),
    [
        (TopicSink, "partitions", "a whole number above 0"),
        (TopicSource, "topics", "a topic or a list of topics"),
        (TopicSource, "start", "`earliest`, `latest`, a moment or offsets"),
        (TopicSource, "end", "`earliest`, `latest`, a moment or offsets"),
        (TopicSink, "headers", "SQL by name"),
        (LookupStep, "cache", "a whole number from 0 on"),
        (LookupStep, "refresh", "a length of time"),
        (LookupStep, "rows", "columns by key"),
        (Pipeline, "every", "a length of time"),
        (Pipeline, "steps", "a list of steps"),
    ],
)
def test_fields(model: Any, field: str, words: str) -> None:
    assert field_words(model.model_fields[field]) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "nothing"),
        (True, "`true`"),
        (5, "5"),
        ("x", "'x'"),
        ([1], "a list"),
        ({"a": 1}, "a mapping"),
        ({}, "an empty mapping"),
        ("x" * 99, "'" + "x" * 57 + "…'"),
        ("mysql://u:hunter2@h", "'mysql://u:***@h'"),
    ],
)
def test_what_is_given(value: Any, words: str) -> None:
    assert given_words(value) == words


def test_either() -> None:
    assert either(["a"]) == "a"
    assert either(["a", "b", "c"]) == "a, b or c"
