"""What a step is given beside the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from millstream.pipelines.description.element import Place
from millstream.pipelines.spark.context import Context


@dataclass(frozen=True)
class StepContext:
    """One step of one pipeline. The session to use is that of the rows: inside a micro-batch it is a clone."""

    context: Context
    frames: Mapping[str, DataFrame] = field(default_factory=dict)
    """The other sources and the tables, by name."""
    place: Place | None = None
    """Where the step was written."""
