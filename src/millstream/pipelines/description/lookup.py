"""The look-up step: the columns that a store has for a row's key."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from millstream.pipelines.description.database import DatabaseUrl
from millstream.pipelines.description.fields import Columns, FilePath, Span, Sql, Words, seconds
from millstream.pipelines.description.step import Step

_NEEDS = {"file": ("path",), "memory": ("rows",), "sql": ("database", "table"), "redis": ("url", "columns")}
_TAKES = {
    "path": ("file",),
    "rows": ("memory",),
    "database": ("sql",),
    "table": ("sql",),
    "key": ("file", "sql"),
    "url": ("redis",),
    "prefix": ("redis",),
}
"""Field -> the types of look-up that have it; all have the others."""


def _redis_url(url: str) -> str:
    if not url.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("this is not the URL of a Redis server: write redis://HOST:PORT/DB")
    return url


class LookupStep(Step):
    """Asks a store for each row's key and adds the columns found: from memory, a file, a SQL database or Redis."""

    name: str = Field(description="Its name in messages and metrics.")
    on: Sql = Field(description="The key: a column or SQL expression of the row.")
    type: Literal["memory", "file", "sql", "redis"] = Field(description="The store.")
    path: FilePath | None = Field(
        default=None, description="file: a CSV, JSON or Parquet file; its first column is the key."
    )
    rows: Annotated[dict[str, dict[str, Any]], Words("columns by key")] | None = Field(
        default=None, description="memory: key -> columns."
    )
    database: DatabaseUrl | None = Field(default=None, description="sql: the database's URL.")
    table: str | None = Field(default=None, description="sql: the table.")
    key: str | None = Field(default=None, description="file, sql: the store's key column; default: the first.")
    url: Annotated[str, AfterValidator(_redis_url), Words("the URL of a Redis server")] | None = Field(
        default=None, description="redis: redis://HOST:PORT/DB."
    )
    prefix: str = Field(default="", description="redis: what comes before the key.")
    columns: Columns | None = Field(
        default=None,
        description="The columns to add, as DDL (`fraud boolean, country string`); default: all that the store has. "
        "redis needs it.",
    )
    cache: int = Field(default=10_000, ge=0, description="How many answers are kept per worker.")
    refresh: Span = Field(
        default=seconds("60s"), description="After this time an answer, or the file, is asked for anew."
    )
    missing: Literal["null", "drop", "dead-letter"] = Field(
        default="null", description="A key that the store does not have."
    )
    away: Literal["wait", "stale", "null", "dead-letter", "fail"] = Field(
        default="wait",
        description="The store does not answer: wait for it, use the last answer however old, go on with nulls, send "
        "the row to the dead letters, or stop.",
    )

    @model_validator(mode="after")
    def _complete(self) -> LookupStep:
        missing = [field for field in _NEEDS[self.type] if getattr(self, field) is None]
        if missing:
            raise ValueError(f"a look-up of type {self.type} needs `{'` and `'.join(missing)}`")
        for field, types in _TAKES.items():
            if self.type not in types and getattr(self, field):
                raise ValueError(f"`{field}` is for a look-up of type {' or '.join(types)}; this one is {self.type}")
        return self
