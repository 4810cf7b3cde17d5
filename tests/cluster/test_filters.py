"""The filter language: what it means, and that it can do nothing else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.cluster.errors import BadInput
from millstream.cluster.filters import compile_filter

RECORD: dict[str, Any] = {
    "topic": "clicks",
    "partition": 2,
    "offset": 41,
    "timestamp": 1777636800000,
    "key": "user-7",
    "value": json.dumps(
        {"campaignId": 3, "user": {"name": "Ann"}, "tags": ["a", "b"], "ok": True, "none": None, "n": "12", "class": 1}
    ),
    "headers": {"trace": "abc", "empty": None, "x-y": "1"},
}


@pytest.mark.parametrize(
    "expression",
    [
        "value.campaignId == 3 and key != null",
        "value.campaignId != 4",
        "value.user.name == 'Ann'",
        'value["user"]["name"] == "Ann"',
        'value["class"] == 1',
        "value.tags[0] == 'a'",
        "value.tags[-1] == 'b'",
        "'b' in value.tags",
        "'c' not in value.tags",
        "len(value.tags) == 2",
        "value.ok",
        "value.ok == true",
        "not value.missing",
        "value.missing == null",
        "value.missing.deeper is null",
        "value.none == None",
        "value.n > 9",
        "value.n + 1 == 13",
        "value.campaignId * 2 - 1 == 5",
        "value.campaignId / 2 == 1.5",
        "value.campaignId % 2 == 1",
        "-value.campaignId == -3",
        "1 < value.campaignId <= 3",
        "offset in [40, 41]",
        "partition in (1, 2)",
        "topic == 'clicks'",
        "headers.trace == 'abc'",
        "headers['x-y'] == 1",
        "headers.empty == null and headers.missing == null",
        "key == 'user-7' or value.missing.x > 3",
        "startswith(key, 'user-') and endswith(key, '7')",
        "contains(value, 'campaign')",
        "'campaign' in value",
        "matches(key, '^user-[0-9]+$')",
        "lower(value.user.name) == 'ann' and upper('a') == 'A'",
        "number('1.5') == 1.5 and number(2) == 2",
        "timestamp >= time('2026-05-01') and timestamp < time('2026-05-02T00:00:00+00:00')",
        "timestamp > time('@1000') and timestamp < time('0s')",
        "value.campaignId == 3 \n and true",
    ],
)
def test_what_holds(expression: str) -> None:
    assert compile_filter(expression)(RECORD)
    assert not compile_filter(f"not ({expression})")(RECORD)


@pytest.mark.parametrize(
    "expression",
    [
        "value.missing > 3",
        "value.user > 3",
        "key > 3",
        "key.field == 'x'",
        "value.tags.name == 'x'",
        "value.tags[9] == 'a'",
        "value.campaignId[0] == 3",
        "value.ok == 1",
        "value.campaignId / 0 == 1",
        "lower(value.campaignId) == 'x'",
        "len(offset) > 0",
        "number('many') > 0",
        "matches(offset, '4')",
        "'a' * 1000000000 == 'a'",
        "'%1000000000d' % 1 == ''",
        "3 in offset",
        "false",
        "null",
    ],
)
def test_what_cannot_be_compared_is_false(expression: str) -> None:
    assert not compile_filter(expression)(RECORD)


@pytest.mark.parametrize(
    ("expression", "words", "column"),
    [
        ("value.campaignId = 3", "write `==`", 17),
        ("key == 'a' && offset > 1", "write `and`", 11),
        ("key == 'a' || offset > 1", "write `or`", 11),
        ("", "empty", 0),
        ("valu.x == 1", "did you mean value?", 0),
        ("key == hello", 'a text needs quotes: "hello"', 7),
        ("len == 3", "len is a function", 0),
        ("lenn(key) == 3", "did you mean len?", 0),
        ("len(key, 3)", "takes 1 argument", 0),
        ("len(x=key)", "takes 1 argument", 0),
        ("key.upper() == 'A'", "no function of a filter", 0),
        ("__import__('os')", "no function of a filter", 0),
        ("ünknown == 'ü' and nope == 3", "there is no ünknown", 0),
        ("key == 'ü' and nope == 3", "there is no nope", 15),
        ("[x for x in value]", "cannot be used", 0),
        ("(lambda: 1)()", "no function", 0),
        ("offset ** 9", "cannot be used", 0),
        ("value[key]", "cannot be used", 0),
        ("value[0:3]", "cannot be used", 0),
        ("b'x' == key", "cannot be used", 0),
        ("1 if key else 2", "cannot be used", 0),
        ("(key := 3)", "cannot be used", 1),
        ("f'{key}'", "cannot be used", 0),
        ("~offset", "cannot be used", 0),
        ("matches(key, '(')", "not a regular expression", 13),
        ("time('soon') > 3", "not a time", 5),
        ("key == 'a", "not an expression", 7),
    ],
)
def test_what_cannot_be_understood_is_pointed_at(expression: str, words: str, column: int) -> None:
    with pytest.raises(BadInput) as refused:
        compile_filter(expression)
    first, *picture = str(refused.value).split("\n")
    assert first.startswith("--filter: ")
    assert words in first
    assert picture == [f"  {expression}", f"  {' ' * column}^"]


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(BadInput):
        compile_filter("(" * 5000 + "1" + ")" * 5000)


def test_a_value_that_is_not_json_has_no_fields() -> None:
    for value in (None, "", "plain", "[1", "3", "\\xff"):
        assert compile_filter("value.x == null")({**RECORD, "value": value})


@given(st.text(max_size=60))
def test_any_text_is_a_filter_or_bad_input(text: str) -> None:
    try:
        wanted = compile_filter(text)
    except BadInput:
        return
    assert wanted(RECORD) in (True, False)
