"""How running pipelines are, there and back as JSON."""

import json

import pytest

from millstream.pipelines.status import PipelineStatus, QueryStatus, as_json, from_json

QUERY = QueryStatus("main", "micro-batch", "state", 3, 120, 40.5, 7, 0.25, "2026-01-31T12:00:00Z", 9, 2, 1, 1000)


@pytest.mark.parametrize(
    "status",
    [
        PipelineStatus("clicks", "starting"),
        PipelineStatus("clicks", "failed", "there is no column ip", (QUERY, QueryStatus("late"))),
    ],
)
def test_there_and_back(status: PipelineStatus) -> None:
    assert from_json(json.loads(json.dumps(as_json(status)))) == status


def test_figures_of_a_later_version_are_left_out() -> None:
    data = {"name": "a", "state": "running", "mood": "good", "queries": [{"name": "main", "colour": "red", "rows": 4}]}
    assert from_json(data) == PipelineStatus("a", "running", None, (QueryStatus("main", rows=4),))


@pytest.mark.parametrize(
    "data", [{}, {"name": "a"}, {"name": "a", "state": "merry"}, {"name": "a", "state": "running", "queries": 3}]
)
def test_what_is_no_status_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"not (a pipeline's state|the status of a pipeline)"):
        from_json(data)
