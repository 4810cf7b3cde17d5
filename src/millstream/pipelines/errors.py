"""Mistakes in a pipeline, and pipelines that cannot go on, with the place where it was written if known."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.cluster.errors import BadInput, ClusterError
from millstream.pipelines.description.element import Place


class PipelineError(ClusterError):
    """A sentence for a person; `place` points into the pipeline's file."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.message = message
        self.place = place


class PipelineErrors(PipelineError):  # noqa: N818 - they are several
    """All that is wrong with a pipeline's file, in the order of its lines; its text has a line for each."""

    exit_code = BadInput.exit_code

    def __init__(self, errors: Sequence[PipelineError]) -> None:
        super().__init__("\n".join(str(error) for error in errors))
        self.errors = tuple(errors)
        self.place = errors[0].place
