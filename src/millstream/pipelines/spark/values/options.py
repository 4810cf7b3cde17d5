"""The options of a source or sink, told apart: those that begin with `value.` are for the value's format."""

from __future__ import annotations

from collections.abc import Mapping

PREFIX = "value."
KAFKA = "kafka."


def value_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options of the format, without the prefix."""
    return {name.removeprefix(PREFIX): value for name, value in options.items() if name.startswith(PREFIX)}


def spark_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options of Spark's source or sink."""
    return {name: value for name, value in options.items() if not name.startswith(PREFIX)}


def producer_options(options: Mapping[str, str]) -> dict[str, str]:
    """The properties of the producer, with their prefix `kafka.`"""
    return {name: value for name, value in options.items() if name.startswith(KAFKA)}


def is_set(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() in ("true", "yes", "1")
