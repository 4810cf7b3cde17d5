"""Why an engine does not start or stop: one sentence for a person, with what would help."""

from __future__ import annotations


class EngineError(Exception):
    """The engine could not be started, stopped or found; nothing that ran before was harmed."""

    exit_code = 1


class EngineInputError(EngineError):
    """An argument is wrong: which one, and what would be right."""

    exit_code = 2
