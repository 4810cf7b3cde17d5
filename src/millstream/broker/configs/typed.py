"""Configs by the type that their reader expects: the accessors that settings and dynamic configs share.

TypeError if a config is of another type than its reader thinks, which is a mistake of ours and not of who set it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from millstream.broker.configs.declaration import Value

Text = str
Texts = list[str]
"""Within `TypedConfigs`, `str` and `list` are its accessors."""


def expect_int(value: Value, name: str) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{name} is {value!r}, not a whole number")
    return value


def expect_float(value: Value, name: str) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"{name} is {value!r}, not a number")
    return float(value)


def expect_bool(value: Value, name: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}, not true or false")
    return value


def expect_str(value: Value, name: str) -> str:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}, not text")
    return value or ""


def expect_list(value: Value, name: str) -> list[str]:
    if value is not None and not isinstance(value, list):
        raise TypeError(f"{name} is {value!r}, not a list")
    return value or []


class TypedConfigs(ABC):
    """Configs with a `value`, read by type."""

    @abstractmethod
    def value(self, name: Text) -> Value:
        """The value in effect, by the type of the config."""

    def int(self, name: Text) -> int:
        return expect_int(self.value(name), name)

    def float(self, name: Text) -> float:
        return expect_float(self.value(name), name)

    def bool(self, name: Text) -> bool:
        return expect_bool(self.value(name), name)

    def str(self, name: Text) -> Text:
        """The text in effect; empty where Kafka has null."""
        return expect_str(self.value(name), name)

    def list(self, name: Text) -> Texts:
        """The items in effect; none where Kafka has null."""
        return expect_list(self.value(name), name)
