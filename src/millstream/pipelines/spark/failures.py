"""Why a query ended, in a sentence for a person, and whether starting it again can help.

Spark wraps what happened in layers of its own; the innermost cause that says something is looked for. What a retry
cannot mend (records gone by retention, columns that do not fit, a mistake in the pipeline) is final.
"""

from __future__ import annotations

import re
from typing import NamedTuple

DATA_LOSS = ("KAFKA_DATA_LOSS", "Some data may have been lost", "OffsetOutOfRange", "Cannot fetch offset")
REAL_TIME_REFUSED = "STREAMING_REAL_TIME_MODE"
FINAL = (
    *DATA_LOSS,
    "PipelineError",
    "AnalysisException",
    "ParseException",
    "UNRESOLVED_COLUMN",
    "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
    "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
    "STREAM_FAILED_SCHEMA",
    REAL_TIME_REFUSED,
)
_PYTHON_ERROR = re.compile(r"^(?:[a-zA-Z_]\w*\.)*(\w+(?:Error|Exception|Interrupt)): (\S.*)$", re.MULTILINE)
_PIPELINE_ERROR = re.compile(r"PipelineError: (.*?)(?:\n\s*at |\n\n|$)", re.DOTALL)
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+\.)?(\w+(?:Exception|Error)): (.+)$", re.MULTILINE)


class Failure(NamedTuple):
    """What happened; `final`: do not try again; `data_loss`: the records are not there any more."""

    message: str
    final: bool
    data_loss: bool = False
    real_time_refused: bool = False


def explain(error: Exception) -> Failure:
    """The failure that an exception of Spark (or of ours) stands for."""
    text = str(error)
    final = any(sign in text for sign in FINAL)
    return Failure(
        message=_message(text),
        final=final,
        data_loss=any(sign in text for sign in DATA_LOSS),
        real_time_refused=REAL_TIME_REFUSED in text,
    )


def _message(text: str) -> str:
    ours = _PIPELINE_ERROR.findall(text)
    if ours:
        return " ".join(ours[-1].split())
    python = _PYTHON_ERROR.findall(text.partition("Traceback (most recent call last)")[2])
    found = [error for error in python if not error[0].startswith("Py4J")] or _CAUSE.findall(text)
    if found:
        kind, message = found[-1]
        return f"{kind}: {message.strip()}"
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    return lines[-1] if len(lines) == 1 else next(iter(lines), "Spark gave no reason")
