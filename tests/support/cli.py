"""The `millstream` command run in this process, as a shell would run it: arguments in, exit code and streams out.

`run` is for everything that ends by itself; it costs milliseconds where a process costs a third of a second. What is
about signals or the time a command takes to start needs the real process (`COMMAND`).
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest import mock

from millstream.cli import main

COMMAND = [sys.executable, "-m", "millstream"]


class Result(NamedTuple):
    """How a command ended and what it said."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.stdout)

    @property
    def json_lines(self) -> list[Any]:
        """The JSON documents on standard output, one a line."""
        return [json.loads(line) for line in self.stdout.splitlines()]


def run(
    *arguments: str, input: str | bytes = b"", terminal: bool = False, columns: int | None = None, **environment: str
) -> Result:
    """Runs `millstream ARGUMENTS...`; `terminal` makes it believe that its three streams are one.

    The contexts of whoever runs the tests are not seen; `environment` is added to the rest of the environment.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MILLSTREAM_")}
    clean["MILLSTREAM_CONFIG"] = os.devnull
    clean["COLUMNS"] = str(columns or 120)
    stdin = _Stream(input.encode() if isinstance(input, str) else input, terminal)
    stdout, stderr = _Stream(b"", terminal), _Stream(b"", terminal)
    with (
        mock.patch.dict(os.environ, {**clean, **environment}, clear=True),
        _replaced("argv", ["millstream", *arguments]),
        _replaced("stdin", stdin),
        _replaced("stdout", stdout),
        _replaced("stderr", stderr),
    ):
        try:
            main()
            exit_code = 0
        except SystemExit as end:
            exit_code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Result(exit_code, stdout.text(), stderr.text())


def succeed(*arguments: str, **options: Any) -> Result:
    """`run` of a command that must exit with 0."""
    result = run(*arguments, **options)
    assert result.exit_code == 0, f"{' '.join(arguments)}: {result}"
    return result


def refused(code: int, *arguments: str, **options: Any) -> str:
    """`run` of a command that must exit with this code and print nothing; what it said on standard error."""
    result = run(*arguments, **options)
    assert result.exit_code == code, f"{' '.join(arguments)}: {result}"
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.stderr


class _Stream(io.TextIOWrapper):
    """A stream with the bytes underneath, as the real ones have."""

    def __init__(self, data: bytes, terminal: bool) -> None:
        self._bytes = io.BytesIO(data)
        self._terminal = terminal
        super().__init__(self._bytes, encoding="utf-8", newline="", write_through=True)

    def isatty(self) -> bool:
        return self._terminal

    def text(self) -> str:
        self.flush()
        return self._bytes.getvalue().decode(errors="replace")


@contextlib.contextmanager
def _replaced(name: str, value: Any) -> Iterator[None]:
    before = getattr(sys, name)
    setattr(sys, name, value)
    try:
        yield
    finally:
        setattr(sys, name, before)
