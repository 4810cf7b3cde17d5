"""`${NAME}` in texts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.pipelines.description.variables import VariableError, escaped, replaced

ENVIRON = {"HOST": "db", "EMPTY": "", "DOLLAR": "${HOST}"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${HOST}:3306", "db:3306"),
        ("${PORT:-3306}", "3306"),
        ("${PORT:-}", ""),
        ("${HOST:-other}", "db"),
        ("${EMPTY}", ""),
        ("${EMPTY:-other}", "other"),
        ("$${HOST}", "${HOST}"),
        ("$HOST costs $5", "$HOST costs $5"),
        ("${DOLLAR}", "${HOST}"),
        (r"^\d+$", r"^\d+$"),
    ],
)
def test_replaced(text: str, value: str) -> None:
    assert replaced(text, ENVIRON) == value


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("${HOTS}", r"HOTS is not set in the environment; did you mean `HOST`\?"),
        ("${OTHER}", r"OTHER is not set in the environment \(`\$\{OTHER:-…\}` would give a default\)"),
        ("${1X}", r"is not followed by a name and `\}`: write \$\{NAME\}"),
        ("${HOST", r"\$\$\{ for a plain \$\{"),
        ("${HOST-x}", "is not followed by a name"),
    ],
)
def test_mistakes(text: str, wrong: str) -> None:
    with pytest.raises(VariableError, match=wrong):
        replaced(text, ENVIRON)


@settings(deadline=None)
@given(st.text(alphabet="${}AB:- "))
def test_what_is_escaped_comes_back(text: str) -> None:
    assert replaced(escaped(text), {}) == text
