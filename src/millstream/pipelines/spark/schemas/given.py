"""A schema that the user gives, read and checked before anything runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from millstream.pipelines.description.element import Place
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.rows import HIDDEN
from millstream.pipelines.spark.schemas import avro, json_schema

FILES = (".ddl", ".avsc", ".json")


@dataclass(frozen=True)
class Schema:
    """The columns of a value, and the document that they came from if it says more than columns can."""

    columns: StructType
    avro: str | None = None
    """The Avro schema as JSON."""
    document: Mapping[str, Any] | None = None
    """The JSON Schema."""


def given(schema: str, place: Place | None = None) -> Schema:
    """The schema as it is written in a pipeline; PipelineError says what is wrong with it."""
    if not schema.endswith(FILES):
        return _checked(Schema(_from_ddl(schema, place)), place)
    try:
        text = Path(schema).read_text()
    except OSError as error:
        raise PipelineError(f"the schema {schema} cannot be read: {error.strerror or error}", place) from error
    if schema.endswith(".ddl"):
        return _checked(Schema(_from_ddl(" ".join(text.split()), place)), place)
    try:
        document = json.loads(text)
    except ValueError as error:
        raise PipelineError(f"the schema {schema} is not JSON: {error}", place) from error
    reader = _from_avro if schema.endswith(".avsc") else _from_json
    return _checked(reader(document, schema, place), place)


def _from_ddl(ddl: str, place: Place | None) -> StructType:
    wanted = f"write columns and Spark's types (`id bigint, name string`), a file ({', '.join(FILES)}) or `infer`"
    try:
        found = StructType.fromDDL(ddl)
    except PySparkException as error:
        reason = str(error).strip().splitlines()[0]
        raise PipelineError(f"{ddl!r} is not a schema: {wanted}: {reason}", place) from error
    if not isinstance(found, StructType):
        raise PipelineError(f"{ddl!r} is a type without a column: {wanted}", place)
    return found


def _from_avro(document: Any, file: str, place: Place | None) -> Schema:
    text = json.dumps(document)
    try:
        return Schema(avro.columns_of(text), avro=text)
    except Exception as error:  # Avro's own, through Py4J or Spark
        raise PipelineError(f"{file} is not an Avro schema: {avro.reason(error)}", place) from error


def _from_json(document: Any, file: str, place: Place | None) -> Schema:
    if isinstance(document, dict) and document.get("type") == "struct" and "fields" in document:
        try:
            return Schema(StructType.fromJson(document))
        except (PySparkException, KeyError, TypeError, ValueError) as error:
            raise PipelineError(f"{file} is not the JSON of a Spark type: {error}", place) from error
    if not isinstance(document, dict):
        raise PipelineError(f"{file} is neither a JSON Schema nor the JSON of a Spark type", place)
    try:
        return Schema(json_schema.columns_of(document), document=document)
    except json_schema.SchemaMistake as error:
        raise PipelineError(f"{file} cannot be used: {error}", place) from error


def _checked(schema: Schema, place: Place | None) -> Schema:
    """Names that a row cannot have twice, or that are taken."""
    names = schema.columns.names
    if not names:
        raise PipelineError("the schema has no columns", place)
    taken = [name for name in names if name.lower() in HIDDEN]
    if taken:
        raise PipelineError(f"{taken[0]} cannot be a column: Millstream keeps a row's origin and error there", place)
    twice = {name for name in names if [other.lower() for other in names].count(name.lower()) > 1}
    if twice:
        raise PipelineError(f"the schema has a column twice: {', '.join(sorted(twice))}", place)
    return schema
