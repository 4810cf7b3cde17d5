"""A database's table as it is: its columns, its unique keys, and whether the rows fit.

Names are compared without regard to case, as most databases do, and then used as the table has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql.types import StructType

from millstream.pipelines.spark.sinks.dialects import Dialect
from millstream.pipelines.spark.sinks.jdbc import Jdbc


class ColumnFacts(NamedTuple):
    """Its name and the database's name for its type; whether a row must bring a value for it."""

    name: str
    type: str
    needed: bool


class TableFacts(NamedTuple):
    """`columns` by their names in lower case; `unique`: sets of columns, in lower case, of which each row has its
    own."""

    columns: dict[str, ColumnFacts]
    unique: set[frozenset[str]]


def describe(jdbc: Jdbc, dialect: Dialect, table: str) -> TableFacts | None:
    """None if there is no such table."""
    place, name = _place(jdbc, dialect, table)
    found = jdbc.about(
        lambda about: about.getColumns(*place, name, None),
        "TABLE_NAME", "COLUMN_NAME", "TYPE_NAME", "IS_NULLABLE", "COLUMN_DEF", "IS_AUTOINCREMENT", "IS_GENERATEDCOLUMN",
    )  # fmt: skip
    columns = {}
    for of, column, kind, nullable, default, counts, computed in found:
        if of == name:  # getColumns takes a pattern, in which _ is any character
            needed = nullable == "NO" and default is None and counts != "YES" and computed != "YES"
            columns[str(column).lower()] = ColumnFacts(str(column), str(kind), needed)
    if not columns:
        return None
    keys: dict[str, set[str]] = {}
    indexed = jdbc.about(lambda about: about.getIndexInfo(*place, name, True, True), "INDEX_NAME", "COLUMN_NAME")
    primary = jdbc.about(lambda about: about.getPrimaryKeys(*place, name), "PK_NAME", "COLUMN_NAME")
    for number, group in enumerate((indexed, primary)):
        for index, column in group:
            if column is not None:
                keys.setdefault(f"{number} {index}", set()).add(column.lower())
    return TableFacts(columns, {frozenset(key) for key in keys.values()})


def tables(jdbc: Jdbc, dialect: Dialect, beside: str, prefix: str) -> list[str]:
    """The tables in the schema of `beside` whose names begin with `prefix`, with the schema if `beside` has one."""
    place, _ = _place(jdbc, dialect, beside)
    space = beside.rpartition(".")[0]
    found = jdbc.about(lambda about: about.getTables(*place, "%", None), "TABLE_NAME", "TABLE_TYPE")
    names = [str(name) for name, kind in found if str(kind).endswith("TABLE") and str(name).startswith(prefix)]
    return [f"{space}.{name}" if space else name for name in names]


def _place(jdbc: Jdbc, dialect: Dialect, table: str) -> tuple[tuple[str | None, str | None], str]:
    """Catalog and schema, as JDBC has them, and the table's own name."""
    outer, _, name = table.rpartition(".")
    space = outer or jdbc.schema(catalog=dialect.catalogs)
    return ((space, None) if dialect.catalogs else (None, space)), name


def misfit(facts: TableFacts, schema: StructType, key: Sequence[str]) -> str | None:
    """What is wrong with writing these rows to the table, and what would be right; None if nothing is."""
    given = {name.lower() for name in schema.names}
    missing = [name for name in schema.names if name.lower() not in facts.columns]
    if missing:
        there = ", ".join(column.name for column in facts.columns.values())
        return (
            f"the table has no column {', '.join(missing)}; it has {there}. Add the column to the table, or leave it "
            "out with the sink's `select`"
        )
    lacking = [column.name for lower, column in facts.columns.items() if column.needed and lower not in given]
    if lacking:
        return (
            f"the table's column {', '.join(lacking)} must have a value, and the rows have no such column; give the "
            "table a default, or add the column in a step"
        )
    if key and frozenset(name.lower() for name in key) not in facts.unique:
        return (
            f"the table has no primary key or unique index on exactly ({', '.join(key)}), so rows with the same key "
            f"could not replace one another; make one, or leave `key` out to append"
        )
    return None
