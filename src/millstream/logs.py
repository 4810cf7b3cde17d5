"""Log lines: an event and what goes with it, `new generation group=readers members=3`, through Python's own logging.

So whoever embeds a server decides where its lines go (pytest captures them, `millstream serve` prints them to standard
error), and nobody's logging set-up is touched.
"""

from __future__ import annotations

import logging


class EventLogger:
    """A logger whose methods take the event, and its values as keywords."""

    __slots__ = ("_logger",)

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, event: str, **values: object) -> None:
        self._log(logging.DEBUG, event, values)

    def info(self, event: str, **values: object) -> None:
        self._log(logging.INFO, event, values)

    def warning(self, event: str, **values: object) -> None:
        self._log(logging.WARNING, event, values)

    def error(self, event: str, **values: object) -> None:
        self._log(logging.ERROR, event, values)

    def exception(self, event: str, **values: object) -> None:
        """An error with the traceback of the exception that is being handled."""
        self._log(logging.ERROR, event, values, exc_info=True)

    def _log(self, level: int, event: str, values: dict[str, object], exc_info: bool = False) -> None:
        if self._logger.isEnabledFor(level):
            words = [event, *(f"{name}={_quoted(str(value))}" for name, value in values.items())]
            self._logger.log(level, "%s", " ".join(words), exc_info=exc_info)


def get_logger(name: str) -> EventLogger:
    return EventLogger(name)


def _quoted(text: str) -> str:
    return repr(text) if not text or " " in text else text
