"""A schema that was found in a sample, once.

What was found is kept as `schema-<source>.json` in the pipeline's folder: the JSON of a Spark type, which people can
read and correct. As long as the file is there nothing is inferred again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from millstream.pipelines.description.element import Place
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.schemas.given import Schema, given

SAMPLE = 1000
"""How many records, or lines, are looked at."""
_CORRUPT = "_corrupt_record"


def inferred(folder: Path, name: str, find: Callable[[], StructType], place: Place | None = None) -> Schema:
    """The schema of the source of this name; `find` is called if none was kept."""
    kept = folder / f"schema-{name}.json"
    if not kept.exists():
        found = find()
        if not found.names:
            raise PipelineError(f"{name}: nothing was found to infer a schema from: give `schema`", place)
        folder.mkdir(parents=True, exist_ok=True)
        written = kept.with_suffix(".new")
        written.write_text(json.dumps(found.jsonValue(), indent=2) + "\n")
        os.replace(written, kept)  # noqa: PTH105 - atomic, also where the file is there already
    return given(str(kept), place)


def columns_of_texts(
    spark: SparkSession, texts: DataFrame, kind: str, options: Mapping[str, str], place: Place | None
) -> StructType:
    """The columns of JSON documents or CSV lines (the only column of `texts`); no columns if there are none."""
    reader = spark.read.options(**options)
    try:
        found = reader.json(texts).schema if kind == "json" else reader.csv(texts, inferSchema=True).schema
    except PySparkException as error:
        raise PipelineError(f"no schema can be inferred: {str(error).splitlines()[0]}", place) from error
    columns = without_corrupt(found)
    if not columns.names and _CORRUPT in found.names:
        raise PipelineError(
            f"no schema can be inferred: none of the values looked at is a {kind.upper()} object", place
        )
    return columns


def without_corrupt(columns: StructType) -> StructType:
    """Without the column in which Spark shows what it could not read."""
    return StructType([field for field in columns.fields if field.name != _CORRUPT])
