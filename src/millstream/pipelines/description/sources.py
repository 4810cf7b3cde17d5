"""Where a pipeline's rows come from.

Which source it is follows from its first field: `topic` (`topics`, `pattern`), `database`, `files`, `tail`, `generate`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, Tag, model_validator

from millstream.pipelines.description.database import DatabaseUrl
from millstream.pipelines.description.element import Element, kind_by_field
from millstream.pipelines.description.fields import (
    FilePath,
    FilePaths,
    MaybeSpan,
    Options,
    Position,
    Schema,
    Span,
    Sql,
    TopicName,
    TopicNames,
    Watermark,
    Words,
    names,
    seconds,
)

ValueFormat = Literal["text", "json", "csv", "avro", "json-schema", "raw"]
FileFormat = Literal["json", "csv", "text", "parquet", "orc", "avro"]


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
    return pattern


def needs_schema(value: str, schema: str) -> None:
    """ValueError if values of this format cannot be understood without a schema."""
    if value in ("avro", "json-schema") and schema == "infer":
        file = "a .avsc file" if value == "avro" else "a .json file"
        raise ValueError(f"values in {value} need their `schema`: {file}")


class Source(Element):
    """What all sources have."""

    watermark: Watermark | None = Field(
        default=None, description="The event time column and how late rows may be: `event_time, 10 minutes`."
    )


class TopicSource(Source):
    """Topics of a Kafka cluster. Partitions that are added while the pipeline runs are picked up."""

    topics: TopicNames = Field(default=names(), alias="topic", description="A topic, or a list.")
    pattern: Annotated[str, AfterValidator(_compiles), Words("a regular expression")] | None = Field(
        default=None, description="A regular expression in place of names."
    )
    value: ValueFormat = Field(default="json", description="How the value is written.")
    key: Literal["none", "text", "raw"] = Field(
        default="none", description="Whether the record's key becomes the column `key`."
    )
    schema_: Schema = Field(
        default="infer",
        alias="schema",
        description="The columns: Spark DDL (`id bigint, name string`), or a file: .avsc, .json (JSON Schema or "
        "Spark's own), .ddl; `infer` reads a sample once and keeps what it found.",
    )
    start: Position = Field(
        default="earliest", description="`earliest`, `latest`, a moment, or offsets; only for the first run."
    )
    end: Position | None = Field(
        default=None, description="Where to stop: `latest` (as it is at the start), a moment or offsets."
    )
    bootstrap: str | None = Field(default=None, description="Another cluster than the pipeline's own.")
    options: Options = Field(
        default_factory=dict, description="Options of Spark's Kafka source and `kafka.` properties."
    )

    @model_validator(mode="before")
    @classmethod
    def _one_or_many(cls, given: Any) -> Any:
        """`topics` is `topic` in the plural."""
        if isinstance(given, dict) and "topics" in given and "topic" not in given:
            return {("topic" if name == "topics" else name): value for name, value in given.items()}
        return given

    @model_validator(mode="after")
    def _complete(self) -> TopicSource:
        if bool(self.topics) == bool(self.pattern):
            raise ValueError("give either `topic` or `pattern`")
        needs_schema(self.value, self.schema_)
        if self.end == "earliest":
            raise ValueError("`end: earliest` would read nothing: write latest, a moment or offsets")
        return self


class DatabaseSource(Source):
    """New (and changed) rows of a table, found by an incrementing column, a timestamp or both. Progress is kept."""

    database: DatabaseUrl = Field(description="The database's URL.")
    table: str | None = Field(default=None, description="The table to read.")
    query: Sql | None = Field(default=None, description="A SELECT in place of a table.")
    incrementing: str | None = Field(default=None, description="A column that only grows: new rows.")
    timestamp: str | None = Field(default=None, description="A column of the last change: new and changed rows.")
    start: str | int | None = Field(default=None, description="Only rows after this value of the column.")
    delay: Span = Field(
        default=seconds("0s"), description="How long a timestamp must be past, for transactions still open."
    )
    poll: Span = Field(default=seconds("1s"), description="How often the database is asked.")

    @model_validator(mode="after")
    def _complete(self) -> DatabaseSource:
        if bool(self.table) == bool(self.query):
            raise ValueError("give either `table` or `query`")
        if not (self.incrementing or self.timestamp):
            raise ValueError("give `incrementing`, `timestamp` or both: without them new rows cannot be told from old")
        return self


class FilesSource(Source):
    """Files that appear in a folder, each read once."""

    files: FilePath = Field(description="A folder or glob; any file system that Spark reaches.")
    format: FileFormat = Field(default="json", description="How the files are written.")
    schema_: Schema = Field(default="infer", alias="schema", description="As for a topic.")
    max_files: int | None = Field(default=None, gt=0, description="At most so many files in one batch.")
    options: Options = Field(default_factory=dict, description="Options of Spark's file source.")


class TailSource(Source):
    """Log files that grow: each line once, also over rotation by renaming. Columns: `value`, `file`, `position`."""

    tail: FilePaths = Field(description="A file or glob, or a list of them.")
    start: Literal["earliest", "latest"] = Field(default="earliest", description="Whether lines already there count.")


class GeneratorSource(Source):
    """Rows made up: `id` counts from 0, `timestamp` is when the row was due; more columns by SQL expressions."""

    generate: dict[str, Sql] = Field(description="Column -> SQL expression of `id` and `timestamp`.")
    rate: int = Field(default=1, gt=0, description="Rows per second.")
    limit: int | None = Field(default=None, gt=0, description="Stop after so many rows.")


SOURCES: dict[str, type[Source]] = {
    "topic": TopicSource,
    "database": DatabaseSource,
    "files": FilesSource,
    "tail": TailSource,
    "generate": GeneratorSource,
}
"""Tag -> the source it is; the tag is also the field that tells."""

AnySource = Annotated[
    Annotated[TopicSource, Tag("topic")]
    | Annotated[DatabaseSource, Tag("database")]
    | Annotated[FilesSource, Tag("files")]
    | Annotated[TailSource, Tag("tail")]
    | Annotated[GeneratorSource, Tag("generate")],
    kind_by_field(SOURCES, {"topics": "topic", "pattern": "topic"}),
]


class Table(Element):
    """A named table beside the stream: a compacted topic (the last value of each key), a database's, or files."""

    topic: TopicName | None = Field(default=None, description="A compacted topic; its key becomes the column `key`.")
    value: ValueFormat = Field(default="json", description="How the topic's values are written.")
    database: DatabaseUrl | None = Field(default=None, description="The database's URL.")
    table: str | None = Field(default=None, description="The database's table, or a table of the metastore.")
    query: Sql | None = Field(default=None, description="A SELECT in place of the database's table.")
    files: FilePath | None = Field(default=None, description="A file, folder or glob.")
    format: FileFormat = Field(default="csv", description="How the files are written.")
    schema_: Schema = Field(default="infer", alias="schema", description="As for a topic.")
    refresh: MaybeSpan = Field(default=seconds(None), description="How often it is read anew; never when not given.")
    options: Options = Field(default_factory=dict, description="Options of Spark's reader.")

    @model_validator(mode="after")
    def _complete(self) -> Table:
        kinds = [self.topic, self.database or self.table, self.files]
        if sum(kind is not None for kind in kinds) != 1:
            raise ValueError("give one of `topic`, `database` (with `table` or `query`), `table` or `files`")
        if self.database and bool(self.table) == bool(self.query):
            raise ValueError("a database needs either `table` or `query`")
        if self.query and not self.database:
            raise ValueError("`query` is for a `database`")
        if self.topic:
            needs_schema(self.value, self.schema_)
        return self
