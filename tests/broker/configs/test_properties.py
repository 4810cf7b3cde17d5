"""Java's properties syntax."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.broker.configs.properties import MalformedProperties, Property, read_properties


def read(text: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value, _ in read_properties(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", [("a", "b")]),
        ("a = b ", [("a", "b ")]),
        ("a: b", [("a", "b")]),
        ("a b", [("a", "b")]),
        ("a", [("a", "")]),
        ("a==b", [("a", "=b")]),
        ("  a=b\n\n# c=d\n! e=f\r\ng=h", [("a", "b"), ("g", "h")]),
        ("a=1,\\\n   2,\\\n   3\nb=4", [("a", "1,2,3"), ("b", "4")]),
        ("a=x\\\\\nb=y", [("a", "x\\"), ("b", "y")]),
        ("a\\=b\\:c=d", [("a=b:c", "d")]),
        ("a=\\t\\u00e9\\q", [("a", "\té" + "q")]),
        ("a=b\\", [("a", "b")]),
        ("a=#b", [("a", "#b")]),
        ("a=1\na=2", [("a", "1"), ("a", "2")]),
        ("\\\n", []),
    ],
)
def test_lines(text: str, expected: list[tuple[str, str]]) -> None:
    assert read(text) == expected


def test_the_line_is_that_of_the_name() -> None:
    assert list(read_properties("#\na=1,\\\n2\nb=3")) == [Property("a", "1,2", 2), Property("b", "3", 4)]


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uzzzz", "x=1\ny=\\u00"])
def test_a_broken_escape_is_named_by_its_line(text: str) -> None:
    with pytest.raises(MalformedProperties) as caught:
        list(read_properties(text))
    assert caught.value.line == text.count("\n") + 1


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        properties = list(read_properties(text))
    except MalformedProperties:
        return
    assert len(properties) <= text.count("\n") + text.count("\r") + 1
