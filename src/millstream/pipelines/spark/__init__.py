"""How a pipeline runs on Spark: the only part of the pipelines that imports PySpark.

- `sources/`, `steps/`, `lookups/`, `sinks/`: one file for each kind, found through a table by the description's class.
- `session`, `plan`, `runner` and their helpers: a session for several pipelines, what Spark is asked to do for each of
  them and why, and the queries while they run.

What a pipeline *is* lives in `description`; what a person types in `millstream.cli`.
"""
