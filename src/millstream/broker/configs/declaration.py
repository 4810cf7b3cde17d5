"""How a config is declared: name, type, default, legal values, importance, when and where it may change, a phrase.

The tables in `configs.tables` hold all of Kafka's configs; settings, DescribeConfigs, the alter APIs and the
documentation all read them through `configs.catalogue`. Values are text everywhere, as Kafka stores and reports them:
`Config.parse` turns text into a value or raises `InvalidValue`, and `render` turns a value back into the text that
Kafka prints.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final, NamedTuple, Protocol

Value = bool | int | float | str | list[str] | None
"""What text becomes once it is parsed by the type of its config."""


class ConfigType(IntEnum):
    """The types of configs, with the numbers DescribeConfigs has for them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Importance(IntEnum):
    HIGH = 0
    MEDIUM = 1
    LOW = 2


class Update(IntEnum):
    """Whether and where a broker config may be changed while the broker runs (KIP-226)."""

    READ_ONLY = 0
    PER_BROKER = 1
    CLUSTER_WIDE = 2


class InvalidValue(ValueError):  # noqa: N818 - it is the value that is invalid; the message says how
    """A value that its config does not take. The message says what it takes."""


class Valid(Protocol):
    """What a config takes beyond its type."""

    def check(self, value: Value) -> str | None:
        """What is wrong with the value, as a phrase that follows its name; None if nothing is."""

    def __str__(self) -> str: ...


class Anything(NamedTuple):
    def check(self, value: Value) -> str | None:
        return None

    def __str__(self) -> str:
        return ""


class Range(NamedTuple):
    low: float
    high: float | None = None
    except_for: float | None = None
    """One more value that is legal although it lies outside."""

    def check(self, value: Value) -> str | None:
        if value is None or isinstance(value, str | list) or value == self.except_for:
            return None
        return None if self.low <= value and (self.high is None or value <= self.high) else f"must be {self}"

    def __str__(self) -> str:
        text = f"at least {self.low}" if self.high is None else f"from {self.low} to {self.high}"
        return text if self.except_for is None else f"{self.except_for}, or {text}"


class OneOf(NamedTuple):
    values: tuple[str, ...]
    any_case: bool = False

    def check(self, value: Value) -> str | None:
        if value in self.values or (self.any_case and isinstance(value, str) and value.lower() in self.values):
            return None
        return f"must be {self}"

    def __str__(self) -> str:
        return "one of " + ", ".join(self.values)


class Items(NamedTuple):
    """A list without repetition and without empty items, of any or of the given items."""

    values: tuple[str, ...] = ()
    may_be_empty: bool = True

    def check(self, value: Value) -> str | None:
        if not isinstance(value, list):
            return None
        if not value and not self.may_be_empty:
            return "must not be empty"
        if len(set(value)) != len(value):
            return "must not name anything twice"
        if "" in value:
            return "must not have an empty item"
        strangers = [item for item in value if item not in self.values] if self.values else []
        return f"must be {self}, not {', '.join(strangers)}" if strangers else None

    def __str__(self) -> str:
        return "a list of " + ", ".join(self.values) if self.values else "a list of different items"


class NotEmpty(NamedTuple):
    def check(self, value: Value) -> str | None:
        return "must not be empty" if value == "" else None

    def __str__(self) -> str:
        return "not empty"


class ThrottledReplicas(NamedTuple):
    def check(self, value: Value) -> str | None:
        if isinstance(value, list) and value != ["*"] and not all(_REPLICA.fullmatch(item) for item in value):
            return f"must be {self}"
        return None

    def __str__(self) -> str:
        return "* or a list of partition:broker"


class OffsetReset(NamedTuple):
    def check(self, value: Value) -> str | None:
        if isinstance(value, str) and not _OFFSET_RESET.fullmatch(value.lower()):
            return f"must be {self}"
        return None

    def __str__(self) -> str:
        return "one of latest, earliest, by_duration:PnDTnHnMn.nS"


_REPLICA: Final = re.compile(r"([0-9]+:[0-9]+)?")
_OFFSET_RESET: Final = re.compile(
    r"latest|earliest|by_duration:p(?=\d|t\d)(\d+d)?(t(?=\d)(\d+h)?(\d+m)?(\d+(\.\d+)?s)?)?"
)
ANYTHING: Final = Anything()


class Config(NamedTuple):
    """One config. `default` is the text Kafka reports for it; None is Kafka's null."""

    name: str
    type: ConfigType
    default: str | None
    valid: Valid
    importance: Importance
    update: Update
    honoured: bool
    """Whether this server acts on it. The others are accepted, checked, stored and reported for compatibility."""
    doc: str
    internal: bool = False
    """Kafka knows it, but does not report it."""

    @property
    def sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str | None) -> Value:
        """The value of a text; InvalidValue if it is not of the type or not legal."""
        value = None if text is None else parse_text(self, text)
        problem = self.valid.check(value)
        if problem is not None:
            raise InvalidValue(f"Invalid value {text} for {self.name}: it {problem}")
        return value

    def expects(self) -> str:
        """What it takes, in words."""
        return " ".join(filter(None, (_TYPE_WORDS[self.type], str(self.valid))))


_TYPE_WORDS: Final = {
    ConfigType.BOOLEAN: "true or false",
    ConfigType.STRING: "text",
    ConfigType.INT: "a whole number of 32 bits",
    ConfigType.SHORT: "a whole number of 16 bits",
    ConfigType.LONG: "a whole number of 64 bits",
    ConfigType.DOUBLE: "a number",
    ConfigType.LIST: "a comma-separated list",
    ConfigType.CLASS: "a class name",
    ConfigType.PASSWORD: "a secret",
}
_BITS: Final = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?|[+-]?(NaN|Infinity)")
_COMMA: Final = re.compile(r"\s*,\s*")


def parse_text(config: Config, text: str) -> Value:
    """The value of a text by type alone, as Kafka parses it: spaces around it do not count."""
    text = text.strip()
    kind = config.type
    if kind is ConfigType.BOOLEAN:
        if text.lower() not in ("true", "false"):
            raise InvalidValue(f"Invalid value {text} for {config.name}: it must be true or false")
        return text.lower() == "true"
    if kind in _BITS:
        bits = _BITS[kind]
        number = int(text) if len(text) <= 20 and _WHOLE_NUMBER.fullmatch(text) else None
        if number is None or not -(1 << bits - 1) <= number < 1 << bits - 1:
            raise InvalidValue(f"Invalid value {text} for {config.name}: it must be {_TYPE_WORDS[kind]}")
        return number
    if kind is ConfigType.DOUBLE:
        if not _NUMBER.fullmatch(text):
            raise InvalidValue(f"Invalid value {text} for {config.name}: it must be a number")
        return float(text.rstrip("dDfF") if text[-1] in "dDfF" else text)
    if kind is ConfigType.LIST:
        return _COMMA.split(text) if text else []
    return text


def render(value: Value) -> str | None:
    """The text of a value as Kafka prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(value)
    if isinstance(value, float):
        return java_double(value)
    return None if value is None else str(value)


def java_double(value: float) -> str:
    """Java's text of a double: Python's digits, but with an exponent from 1.0E7 on and below 0.001."""
    text = repr(value)
    if value == 0 or 1e-3 <= abs(value) < 1e7 or not text.lstrip("-")[0].isdigit():
        return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(text, text)
    mantissa, _, exponent = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    power = len(whole) - (len(whole + fraction) - len(digits)) - 1 + int(exponent or 0)
    digits = digits.rstrip("0")
    return f"{'-' * (value < 0)}{digits[0]}.{digits[1:] or '0'}E{power}"
