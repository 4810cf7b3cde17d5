"""RE2's syntax against topic names: what is accepted, what it means, and that no expression takes for ever."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.broker.regular_expressions import InvalidRegularExpression, Pattern

LONGEST_NAME = 249


@pytest.mark.parametrize(
    ("expression", "matching", "other"),
    [
        ("orders", ["orders"], ["orders-2", "my-orders", ""]),
        ("orders-.*", ["orders-", "orders-eu.1"], ["orders"]),
        ("^orders.*$", ["orders", "orders1"], ["xorders"]),
        ("a|b|", ["a", "b", ""], ["ab"]),
        ("(a|b)+c", ["ac", "abac"], ["c"]),
        ("(?:ab){2}", ["abab"], ["ab", "ababab"]),
        ("a{2,}", ["aa", "aaa"], ["a"]),
        ("a{1,2}b{0}", ["a", "aa"], ["aaa", "ab"]),
        ("a{,2}", [], ["a", "aa"]),
        ("a*?b+?c??", ["b", "aabbc"], ["a"]),
        ("[a-c_.-]+", ["a-b.c_"], ["d"]),
        ("[^a-c]+", ["xyz", "9"], ["xa"]),
        ("[]a]+", ["a"], ["b"]),
        ("[a-b-d]x", ["ax", "-x", "dx"], ["cx"]),
        ("[a-]x", ["ax", "-x"], ["bx"]),
        ("[[:alpha:]]+[[:^digit:]]", ["ab", "a-"], ["a1"]),
        (r"\d+\D", ["12x"], ["x1"]),
        (r"\w+\W\w", ["a_1-b"], ["a_b"]),
        (r"[\d_]+", ["1_2"], ["a"]),
        (r"a\.b", ["a.b"], ["axb"]),
        (r"\x61\x{62}\143\07", [], ["abc"]),
        (r"\x61\x{62}\143", ["abc"], []),
        (r"\Qa.b\E+", ["a.b", "a.bb"], ["axb"]),
        (r"\Qa.*", [], ["a.b"]),
        (r"\Aab\z", ["ab"], ["abc"]),
        (r"a\b.b", ["a.b", "a-b"], ["axb"]),
        (r"a\B.b", ["axb"], ["a.b"]),
        (r"\pL+\p{Nd}\P{L}", ["abc1-", "a12"], ["a1b"]),
        (r"\p{Lu}\p{^Lu}", ["Aa"], ["AA"]),
        (r"\p{Greek}", [], ["a"]),
        ("(?i)AbC", ["abc", "ABC"], ["abd"]),
        ("(?i:a)b", ["Ab", "ab"], ["aB"]),
        ("a(?i)b(?-i)c", ["aBc"], ["aBC", "ABc"]),
        ("(?i)[a-c]", ["B"], ["d"]),
        ("(?P<name>a)(?<other>b)", ["ab"], ["a"]),
        ("(?sm:a.)", ["ab"], ["a"]),
        ("x{", [], ["x"]),
        ("", [""], ["a"]),
        ("ü|a", ["a"], ["u"]),
    ],
)
def test_what_an_expression_means(expression: str, matching: list[str], other: list[str]) -> None:
    pattern = Pattern(expression)
    assert [name for name in matching if not pattern.matches(name)] == []
    assert [name for name in other if pattern.matches(name)] == []


@pytest.mark.parametrize(
    "expression",
    [
        *("(", ")", "(a", "[a", "[b-a]", "*", "a**", "a{2,1}", "a{1001}", "a\\", r"\1", r"\p{Nope}"),
        *("(?=a)", "(?!a)", "(?<=a)", "(?>a)", "(?P=n)", "(?z)"),
        *("(a{1000}){1000}", "a{1000}" * 100),
    ],
)
def test_what_is_not_an_expression(expression: str) -> None:
    with pytest.raises(InvalidRegularExpression):
        Pattern(expression)


@pytest.mark.parametrize("expression", ["(a*)*b", "(a|aa)+b", "(a|a)*b", "(.*)*(.*)*(.*)*b", "(a?){200}a{200}"])
def test_expressions_that_bring_others_to_their_knees(expression: str) -> None:
    pattern = Pattern(expression)
    assert pattern.matches("a" * LONGEST_NAME) is expression.endswith("{200}")


atoms = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", r"\.", r"\b", "^", r"\Z", "", "-", r"\d"])
expressions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("(?:{0[0]}|{0[1]})".format),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,}", "*?", "{2,3}?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(expressions, st.lists(st.text("ab.-1", max_size=6), max_size=6))
def test_it_agrees_with_python_where_the_syntax_is_the_same(expression: str, names: list[str]) -> None:
    python = re.compile(expression)
    pattern = Pattern(expression.replace(r"\Z", r"\z"))
    for name in names:
        assert pattern.matches(name) == bool(python.fullmatch(name))
