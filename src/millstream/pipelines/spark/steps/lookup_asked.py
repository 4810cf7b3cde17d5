"""Look-ups in stores that are asked by key, from Spark's workers: SQL databases and Redis.

Each worker process keeps a connection and a cache for each store, across micro-batches. Rows pass through a worker as
Arrow record batches and get one more column, the answer to their key as texts; Spark casts those to the columns'
types afterwards, so that it is the same casts for all stores. A value that cannot be cast is an error of its row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructField, StructType

from millstream.pipelines.description.database import parse_database
from millstream.pipelines.description.lookup import LookupStep
from millstream.pipelines.spark.lookups.asking import Answers, Asker, Away
from millstream.pipelines.spark.lookups.cache import Cache
from millstream.pipelines.spark.lookups.redis import RedisSettings
from millstream.pipelines.spark.lookups.sql import SqlSettings
from millstream.pipelines.spark.lookups.store import StoreSettings, Unusable
from millstream.pipelines.spark.sources.database_schema import actual_name, columns_of, relation_of
from millstream.pipelines.spark.steps.checks import Check, unreadable
from millstream.pipelines.spark.steps.context import StepContext
from millstream.pipelines.spark.steps.lookup_rules import (
    AWAY,
    UNUSABLE,
    columns_wanted,
    is_missing,
    kept,
    key_of,
    refuse_common,
    with_answers,
)

KEY, ANSWER, VALUES = "_lookup_key", "_lookup", "_lookup_values"
FOUND = "found"
ANSWER_TYPE = StructType([
    StructField("state", StringType()),
    StructField("reason", StringType()),
    StructField("values", ArrayType(StringType())),
])  # fmt: skip
_ARROW_TYPE = pa.struct([("state", pa.string()), ("reason", pa.string()), ("values", pa.list_(pa.string()))])


class Asked(NamedTuple):
    """What is asked, and the types of the columns that come of it."""

    store: StoreSettings
    columns: StructType


class Question(NamedTuple):
    """What a worker needs to know; workers keep what they learn by it."""

    store: StoreSettings
    columns: tuple[tuple[str, str], ...]
    cache: int
    refresh: float
    away: Away


def apply_asked(rows: DataFrame, step: LookupStep, context: StepContext) -> DataFrame:
    spark = rows.sparkSession
    store, columns = kept(spark, step, lambda: _asked(spark, step, context))
    refuse_common(rows, columns.names, step, context)
    types = tuple((field.name, field.dataType.simpleString()) for field in columns.fields)
    question = Question(store, types, step.cache, step.refresh, step.away)
    with_key = rows.withColumn(KEY, key_of(step))
    answered = with_key.mapInArrow(
        Answering(question), StructType([*with_key.schema.fields, StructField(ANSWER, ANSWER_TYPE)])
    )
    if step.missing == "drop":
        answered = answered.where(F.col(ANSWER)["state"].isNotNull())
    values = F.struct(*(_cast(F.col(ANSWER)["values"][index], field.dataType).alias(field.name)
                        for index, field in enumerate(columns.fields)))  # fmt: skip
    return with_answers(
        answered.withColumn(VALUES, values),
        rows,
        {name: F.col(VALUES)[name] for name in columns.names},
        step,
        _checks(columns, step),
    )


def _checks(columns: StructType, step: LookupStep) -> list[Check]:
    answer, key = F.col(ANSWER), F.col(KEY)
    reason = F.concat(F.lit("key '"), key, F.lit(f"' of {step.name}: "), answer["reason"])
    checks = [
        Check(kind, answer["state"] == kind, reason)
        for kind in (AWAY, UNUSABLE)
        if kind == UNUSABLE or step.away != "null"
    ]
    checks += is_missing(answer["state"].isNull(), key, step)
    checks += [
        unreadable(
            UNUSABLE, field.name, field.dataType.simpleString(), answer["values"][index], F.col(VALUES)[field.name]
        )
        for index, field in enumerate(columns.fields)
        if not isinstance(field.dataType, StringType)
    ]
    return checks


def _cast(text: Column, type_: DataType) -> Column:
    if isinstance(type_, StringType):
        return text
    if isinstance(type_, BinaryType):
        return F.unhex(text)
    if isinstance(type_, ArrayType | MapType | StructType):
        return F.from_json(text, type_.simpleString())
    return text.try_cast(type_)


def _asked(spark: SparkSession, step: LookupStep, context: StepContext) -> Asked:
    """The store, and the columns with their types; PipelineError if a table or column is not there."""
    wanted = columns_wanted(step, context)
    if step.type == "redis":
        columns = wanted or StructType()  # the description sees to it that there are some
        return Asked(RedisSettings(str(step.url), step.prefix, tuple(columns.names)), columns)
    database, table = parse_database(str(step.database)), str(step.table)
    there = columns_of(spark, database, relation_of(database, table, None), context.place)
    key = actual_name(there, step.key or there.names[0], context.place)
    columns = wanted or StructType([field for field in there.fields if field.name != key])
    names = tuple(actual_name(there, name, context.place) for name in columns.names)
    return Asked(SqlSettings(database, table, key, there[key].dataType.simpleString(), names), columns)


# --- in the workers ---

_askers: dict[Question, Asker] = {}
"""One for each store; a worker process lives for many tasks."""


def asker_for(question: Question) -> Asker:
    if question not in _askers:
        names = dict(zip(question.store.columns, (type_ for _, type_ in question.columns), strict=True))
        _askers[question] = Asker(question.store.open(), names, Cache(question.cache, question.refresh), question.away)
    return _askers[question]


class Answering:
    """Record batches in, the same with answers out."""

    def __init__(self, question: Question) -> None:
        self._question = question

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        asker = asker_for(self._question)
        for batch in batches:
            yield batch.append_column(ANSWER, answers_to(batch.column(KEY), asker))


def answers_to(keys: pa.Array, asker: Asker) -> pa.Array:
    """The answer for each key; each key is asked for once."""
    coded = keys.dictionary_encode()
    texts: Sequence[str] = coded.dictionary.to_pylist()
    answers = asker.ask(texts)
    found = pa.array([_answer(text, answers) for text in texts], _ARROW_TYPE)
    return found.take(coded.indices) if len(texts) else pa.nulls(len(keys), _ARROW_TYPE)


def _answer(key: str, answers: Answers) -> dict[str, Any] | None:
    """None: the store does not have the key."""
    if key not in answers.known:
        return {"state": AWAY, "reason": answers.away}
    values = answers.known[key]
    if values is None:
        return None
    if isinstance(values, Unusable):
        return {"state": UNUSABLE, "reason": values.reason}
    return {"state": FOUND, "values": values}
