"""The loggers that an admin client may see and change (KIP-412): Python's own, with Kafka's names for the levels.

A change lasts until the server stops. The root logger cannot be unset.
"""

from __future__ import annotations

import logging
from typing import Final

from millstream.wire.errors import ErrorCode, KafkaError

ROOT: Final = "root"
_LEVELS: Final = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}


def levels() -> dict[str, str]:
    """All loggers with the levels in effect, the root first."""
    names = sorted(
        name for name, logger in logging.root.manager.loggerDict.items() if isinstance(logger, logging.Logger)
    )
    return {ROOT: _name(logging.root)} | {name: _name(logging.getLogger(name)) for name in names}


def _name(logger: logging.Logger) -> str:
    level = logger.getEffectiveLevel()
    return next((name for name, value in reversed(_LEVELS.items()) if value <= level), "TRACE")


def check(name: str, level: str | None, *, unset: bool) -> None:
    """KafkaError if the level of a logger cannot be set, or unset."""
    if name not in levels():
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"There is no logger {name}")
    if unset:
        if name == ROOT:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The level of the root logger cannot be unset")
    elif level not in _LEVELS:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{level} is not a level: it must be one of {', '.join(_LEVELS)}")


def set_level(name: str, level: str) -> None:
    (logging.root if name == ROOT else logging.getLogger(name)).setLevel(_LEVELS[level])


def unset_level(name: str) -> None:
    logging.getLogger(name).setLevel(logging.NOTSET)
