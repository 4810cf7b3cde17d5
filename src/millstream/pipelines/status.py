"""How running pipelines are, as plain data: what the runner tells, the screen draws, and `progress.json` keeps.

A figure that is not known (yet) is None: a query without a watermark has none, one without state has no state rows, a
source that is no topic has no lag. Times are ISO 8601 in UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

State = Literal["starting", "running", "restarting", "stopping", "stopped", "failed"]
STATES: tuple[State, ...] = ("starting", "running", "restarting", "stopping", "stopped", "failed")
ENDED: frozenset[str] = frozenset({"stopped", "failed"})
"""States that a pipeline leaves only when somebody starts it again."""


class QueryStatus(NamedTuple):
    """One of a pipeline's queries. Counts are since the pipeline was started; rates are of the last batch."""

    name: str
    mode: str = ""
    """`real-time` or `micro-batch`; `why` says why the runner chose it."""
    why: str = ""
    batch: int | None = None
    """The number of the last batch that was finished."""
    rows: int = 0
    rows_per_second: float | None = None
    lag: int | None = None
    """Records of the topics that were there and not yet read."""
    batch_seconds: float | None = None
    watermark: str | None = None
    state_rows: int | None = None
    late_rows: int = 0
    dead_letters: int = 0
    limit: int | None = None
    """Records that a batch may have at most just now (back-pressure); None: no limit."""


class PipelineStatus(NamedTuple):
    """One pipeline: what it does just now, what stopped it, and its queries."""

    name: str
    state: State
    error: str | None = None
    queries: Sequence[QueryStatus] = ()


Snapshot = Sequence[PipelineStatus]
"""All pipelines of one runner at one moment."""


def as_json(status: PipelineStatus) -> dict[str, Any]:
    """For `progress.json` and `--json`."""
    return {**status._asdict(), "queries": [query._asdict() for query in status.queries]}


def from_json(data: Mapping[str, Any]) -> PipelineStatus:
    """The reverse; figures that this version does not know are left out. ValueError if it is no status."""
    try:
        state = data["state"]
        if state not in STATES:
            raise ValueError(f"{state!r} is not a pipeline's state")
        queries = tuple(QueryStatus(**_known(query, QueryStatus._fields)) for query in data.get("queries", ()))
        return PipelineStatus(data["name"], state, data.get("error"), queries)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is not the status of a pipeline: {error!r}") from error


def _known(data: Mapping[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    return {name: data[name] for name in fields if name in data}
