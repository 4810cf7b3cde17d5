"""Values of configs: what is taken, what is refused, and how they are printed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.broker.configs.declaration import (
    ANYTHING,
    Config,
    ConfigType,
    Importance,
    InvalidValue,
    Items,
    NotEmpty,
    OffsetReset,
    OneOf,
    Range,
    ThrottledReplicas,
    Update,
    Valid,
    java_double,
    render,
)


def config(kind: ConfigType, valid: Valid = ANYTHING) -> Config:
    return Config("some.config", kind, None, valid, Importance.LOW, Update.READ_ONLY, True, "for a test")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ConfigType.BOOLEAN, " TRUE ", True),
        (ConfigType.BOOLEAN, "false", False),
        (ConfigType.INT, " 2147483647", 2147483647),
        (ConfigType.INT, "+7", 7),
        (ConfigType.SHORT, "-32768", -32768),
        (ConfigType.LONG, "9223372036854775807", 9223372036854775807),
        (ConfigType.DOUBLE, "0.5", 0.5),
        (ConfigType.DOUBLE, "1e3", 1000.0),
        (ConfigType.LIST, "a , b,c", ["a", "b", "c"]),
        (ConfigType.LIST, "  ", []),
        (ConfigType.STRING, " x ", "x"),
        (ConfigType.PASSWORD, "secret", "secret"),
    ],
)
def test_text_is_parsed_by_type(kind: ConfigType, text: str, value: object) -> None:
    assert config(kind).parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (ConfigType.BOOLEAN, "yes"),
        (ConfigType.INT, "2147483648"),
        (ConfigType.INT, "1.0"),
        (ConfigType.INT, ""),
        (ConfigType.INT, "1_000"),
        (ConfigType.SHORT, "32768"),
        (ConfigType.LONG, "9" * 400),
        (ConfigType.DOUBLE, "one"),
        (ConfigType.DOUBLE, ""),
    ],
)
def test_text_of_another_type_is_refused(kind: ConfigType, text: str) -> None:
    with pytest.raises(InvalidValue, match=r"some\.config"):
        config(kind).parse(text)


@pytest.mark.parametrize(
    ("valid", "kind", "good", "bad"),
    [
        (Range(1), ConfigType.INT, "1", "0"),
        (Range(0, 1), ConfigType.DOUBLE, "1.0", "1.01"),
        (Range(1, 9, except_for=-1), ConfigType.INT, "-1", "0"),
        (OneOf(("a", "b")), ConfigType.STRING, "a", "A"),
        (OneOf(("a", "b"), any_case=True), ConfigType.STRING, "A", "c"),
        (Items(("a", "b")), ConfigType.LIST, "", "c"),
        (Items(), ConfigType.LIST, "x,y", "x,x"),
        (Items(), ConfigType.LIST, "x", "x,,y"),
        (Items(may_be_empty=False), ConfigType.LIST, "x", ""),
        (NotEmpty(), ConfigType.STRING, "x", ""),
        (ThrottledReplicas(), ConfigType.LIST, "0:1,2:1", "0-1"),
        (ThrottledReplicas(), ConfigType.LIST, "*", "*,0:1"),
        (OffsetReset(), ConfigType.STRING, "by_duration:PT1H", "by_duration:"),
        (OffsetReset(), ConfigType.STRING, "earliest", "first"),
    ],
)
def test_legal_values_decide(valid: Valid, kind: ConfigType, good: str, bad: str) -> None:
    config(kind, valid).parse(good)
    with pytest.raises(InvalidValue, match="must"):
        config(kind, valid).parse(bad)


def test_null_is_a_value() -> None:
    assert config(ConfigType.INT, Range(5)).parse(None) is None


def test_what_is_expected_is_said_in_words() -> None:
    assert config(ConfigType.INT, Range(1, 9)).expects() == "a whole number of 32 bits from 1 to 9"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (0.5, "0.5"),
        (1e-05, "1.0E-5"),
        (0.0001, "1.0E-4"),
        (12345678.0, "1.2345678E7"),
        (float("inf"), "Infinity"),
        (100.0, "100.0"),
        (-12345678.0, "-1.2345678E7"),
        (0.001, "0.001"),
    ],
)
def test_doubles_are_printed_as_java_prints_them(value: float, text: str) -> None:
    assert java_double(value) == text


@given(st.floats(allow_nan=False))
def test_a_printed_double_is_read_back_as_itself(value: float) -> None:
    assert config(ConfigType.DOUBLE).parse(java_double(value)) == value


@given(st.lists(st.from_regex(r"[a-z0-9.:]+", fullmatch=True)))
def test_a_printed_list_is_read_back_as_itself(items: list[str]) -> None:
    assert config(ConfigType.LIST).parse(render(items)) == items
