"""Names taken out of regular expressions."""

import re

import pytest

from millstream.pipelines.spark.steps.regex import Groups, named_groups


@pytest.mark.parametrize(
    ("expression", "pattern", "numbers"),
    [
        (r"(?<a>\d+) (?P<b_c>\w+)", r"(\d+) (\w+)", {"a": 1, "b_c": 2}),
        (r"(x)(?:y)(?<a>z)(?=w)(?<!v)(?<b>u)", r"(x)(?:y)(z)(?=w)(?<!v)(u)", {"a": 2, "b": 3}),
        (r"\((?<a>.)\) [(](?<b>.)[)]", r"\((.)\) [(](.)[)]", {"a": 1, "b": 2}),
        (r"[]()](?<a>x)[^](](?<b>y)", r"[]()](x)[^](](y)", {"a": 1, "b": 2}),
        (r"[a[(]&&[^(]](?<a>x)", r"[a[(]&&[^(]](x)", {"a": 1}),
        (r"\Q(?<no>\E(?<a>x)", r"\Q(?<no>\E(x)", {"a": 1}),
        (r"(?<a>x)\k<a>5", r"(x)(?:\1)5", {"a": 1}),
        (r"((?<a>x)|(?<b>y))", r"((x)|(y))", {"a": 2, "b": 3}),
        (r"plain", r"plain", {}),
    ],
)  # fmt: skip
def test_names_become_numbers(expression: str, pattern: str, numbers: dict[str, int]) -> None:
    assert named_groups(expression) == Groups(pattern, numbers)


def test_the_groups_numbers_are_those_of_the_expression() -> None:
    groups = named_groups(r"(?P<first>a+)(?:-)((?P<second>b+))")

    found = re.search(groups.pattern, "aa-bbb")

    assert found is not None
    assert {name: found[number] for name, number in groups.numbers.items()} == {"first": "aa", "second": "bbb"}


@pytest.mark.parametrize(
    ("expression", "message"),
    [("(?<a>x)(?<a>y)", "two groups are called a"), (r"(?<a>x)\k<b>", "names no group")],
)
def test_a_name_that_is_not_clear_is_refused(expression: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        named_groups(expression)
