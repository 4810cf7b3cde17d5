"""The columns of a source's values: given by the user, or found once in a sample and kept.

A schema is given as Spark's DDL or as a file: `.ddl`, `.avsc`, or `.json` (a JSON Schema, or the JSON of a Spark type).
`given` reads it; `inferred` keeps what was found in the pipeline's folder and never looks again, so that a restart
cannot change a pipeline's columns.
"""

from millstream.pipelines.spark.schemas.given import Schema, given
from millstream.pipelines.spark.schemas.inferred import inferred

__all__ = ["Schema", "given", "inferred"]
