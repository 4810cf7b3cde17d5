"""Where a pipeline's rows go.

Which sink it is follows from its first field: `topic`, `database`, `cassandra`, `table`, `files` or `console`. Every
sink may take a part of the rows (`where`) and of the columns (`select`).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag, model_validator

from millstream.pipelines.description.database import DatabaseUrl
from millstream.pipelines.description.element import Element, kind_by_field
from millstream.pipelines.description.fields import FilePath, Names, Options, Schema, Sql, TopicName, names


class Sink(Element):
    """What all sinks have."""

    where: Sql | None = Field(default=None, description="Only the rows for which this is true.")
    select: Names = Field(default=names(), description="Only these columns or expressions.")


class TopicSink(Sink):
    """A topic. It is made if it is missing."""

    topic: TopicName = Field(description="The topic.")
    value: Literal["json", "text", "csv", "avro", "raw"] = Field(
        default="json", description="How the value is written; text and raw take the column `value`, or the only one."
    )
    key: Sql | None = Field(default=None, description="The record's key: a column or SQL expression.")
    headers: dict[str, Sql] = Field(default_factory=dict, description="Header -> SQL expression.")
    schema_: Schema | None = Field(
        default=None, alias="schema", description="avro: the .avsc file; default: from the columns."
    )
    delivery: Literal["at-least-once", "exactly-once"] = Field(
        default="at-least-once",
        description="exactly-once writes each batch in one transaction, for readers with read_committed.",
    )
    partitions: int = Field(default=1, gt=0, description="If the topic must be made.")
    bootstrap: str | None = Field(default=None, description="Another cluster than the pipeline's own.")
    options: Options = Field(default_factory=dict, description="`kafka.` properties of the producer.")

    @model_validator(mode="after")
    def _complete(self) -> TopicSink:
        if self.schema_ is not None and self.value != "avro":
            raise ValueError(f"`schema` is for `value: avro`; values in {self.value} have none")
        return self


class DatabaseSink(Sink):
    """A table of a SQL database, made if it is missing. Rows and the batch's number are written in one transaction."""

    database: DatabaseUrl = Field(description="The database's URL.")
    table: str = Field(description="The table.")
    key: Names = Field(
        default=names(), description="Rows with the same key replace one another (upsert); default: append."
    )
    create: bool = Field(default=True, description="Make the table if it is missing.")
    types: dict[str, str] = Field(
        default_factory=dict, description="Column -> the database's own type, if the table is made."
    )


class CassandraSink(Sink):
    """A table of Cassandra. Writing a row twice is the same as once, by its primary key."""

    cassandra: str = Field(description="HOST:PORT, several with commas.")
    keyspace: str = Field(description="The keyspace; made if it is missing.")
    table: str = Field(description="The table; made if it is missing.")
    key: Names = Field(min_length=1, description="The partition key.")
    clustering: Names = Field(default=names(), description="The clustering columns: `time desc`.")
    replication: int = Field(default=1, gt=0, description="If the keyspace must be made.")
    ttl: int | None = Field(default=None, gt=0, description="Seconds after which a row goes.")
    consistency: str = Field(default="LOCAL_ONE", description="The consistency level.")
    user: str | None = Field(default=None, description="User.")
    password: str | None = Field(default=None, description="Password; `${NAME}` takes the environment's.")


class FileOutput(Sink):
    """What tables and files share: a batch's files have names made of the batch, so that writing it twice is once."""

    format: Literal["parquet", "orc", "json", "csv", "avro"] = Field(
        default="parquet", description="How the files are written."
    )
    partition_by: Names = Field(default=names(), description="Columns that become folders.")
    options: Options = Field(default_factory=dict, description="Options of Spark's writer, such as `compression`.")


class TableSink(FileOutput):
    """A table of the (Hive) metastore over files on this machine, HDFS or S3, with its partitions."""

    table: str = Field(description="`database.table`; both are made if they are missing.")
    location: FilePath | None = Field(default=None, description="Where its files are; default: the warehouse.")


class FilesSink(FileOutput):
    """Files in a folder on this machine, HDFS or S3."""

    files: FilePath = Field(description="The folder.")


class ConsoleSink(Sink):
    """Rows on standard output, as JSON lines."""

    console: bool | int = Field(default=True, description="`true`, or at most so many rows of a batch.")


SINKS: dict[str, type[Sink]] = {
    "topic": TopicSink,
    "database": DatabaseSink,
    "cassandra": CassandraSink,
    "table": TableSink,
    "files": FilesSink,
    "console": ConsoleSink,
}
"""Tag -> the sink it is; the tag is also the field that tells. `database` and `cassandra` come before `table`."""

AnySink = Annotated[
    Annotated[TopicSink, Tag("topic")]
    | Annotated[DatabaseSink, Tag("database")]
    | Annotated[CassandraSink, Tag("cassandra")]
    | Annotated[TableSink, Tag("table")]
    | Annotated[FilesSink, Tag("files")]
    | Annotated[ConsoleSink, Tag("console")],
    kind_by_field(SINKS),
]
