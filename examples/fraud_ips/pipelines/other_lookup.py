"""The pipelines of `fraud-ips.yaml` with the fraud ranges in another store: one step changes, nothing else.

`FRAUD_LOOKUP` says which store (memory, sql or redis), `FRAUD_STORE` where it is.
"""

import csv
import os
from pathlib import Path

from millstream.pipelines import LookupStep, Pipeline, read

FOLDER = Path(__file__).parent


def lookup(step: LookupStep) -> LookupStep:
    store = os.environ.get("FRAUD_STORE")
    match os.environ.get("FRAUD_LOOKUP", "memory"):
        case "sql":
            return LookupStep(name=step.name, on=step.on, type="sql", database=store, table="ranges", columns=COLUMNS)
        case "redis":
            return LookupStep(name=step.name, on=step.on, type="redis", url=store, prefix="range:", columns=COLUMNS)
    with (FOLDER / "ranges.csv").open() as file:
        rows = {row["range"]: {"fraud": row["fraud"] == "true"} for row in csv.DictReader(file)}
    return LookupStep(name=step.name, on=step.on, type="memory", rows=rows)


def with_other_lookup(pipeline: Pipeline) -> Pipeline:
    steps = tuple(lookup(step) if isinstance(step, LookupStep) else step for step in pipeline.steps)
    return pipeline.model_copy(update={"steps": steps})


COLUMNS = "fraud boolean"
fraud_ips, fraud_windows = map(with_other_lookup, read(FOLDER / "fraud-ips.yaml"))
