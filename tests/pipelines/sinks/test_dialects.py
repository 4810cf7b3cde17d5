"""Which errors of a database are whose fault, and names and types as each writes them."""

import pytest
from pyspark.sql.types import ArrayType, DecimalType, LongType, StringType

from millstream.pipelines.description.database import parse_database
from millstream.pipelines.spark.sinks.dialects import DIALECTS, Blame, connection_options
from millstream.pipelines.spark.sinks.jdbc import SqlError


@pytest.mark.parametrize(
    ("kind", "state", "code", "blame"),
    [
        ("postgresql", "22001", 0, Blame.ROW),
        ("postgresql", "23505", 0, Blame.ROW),
        ("postgresql", "P0001", 0, Blame.ROW),
        ("postgresql", "08006", 0, Blame.PASSING),
        ("postgresql", "40P01", 0, Blame.PASSING),
        ("postgresql", "57P01", 0, Blame.PASSING),
        ("postgresql", "42P01", 0, Blame.SETUP),
        ("postgresql", "28P01", 0, Blame.SETUP),
        ("mariadb", "22001", 1406, Blame.ROW),
        ("mariadb", "01000", 1265, Blame.ROW),
        ("mysql", "HY000", 3819, Blame.ROW),
        ("mysql", "HY000", 1205, Blame.PASSING),
        ("mariadb", "40001", 1213, Blame.PASSING),
        ("mariadb", "42S02", 1146, Blame.SETUP),
        ("sqlite", "", 19, Blame.ROW),
        ("sqlite", "", 275, Blame.ROW),  # SQLITE_CONSTRAINT_CHECK, of which 19 is the family
        ("sqlite", "", 5, Blame.PASSING),
        ("sqlite", "", 1, Blame.SETUP),
    ],
)
def test_errors_are_sorted_by_blame(kind: str, state: str, code: int, blame: Blame) -> None:
    assert DIALECTS[kind].blame(SqlError(state, code, "SQLException", "it failed")) is blame


def test_names_are_quoted_so_that_they_cannot_be_more_than_names() -> None:
    assert DIALECTS["mysql"].quote("a`b") == "`a``b`"
    assert DIALECTS["sqlite"].quote_table('main.my "table"') == '"main"."my ""table"""'


def test_types_that_depend_on_more_than_their_name() -> None:
    assert DIALECTS["mariadb"].type_of(StringType(), key=True) == "VARCHAR(255)"
    assert DIALECTS["sqlite"].type_of(DecimalType(15, 2)) == "NUMERIC(15,2)"
    assert DIALECTS["sqlite"].type_of(DecimalType(16, 2)) == "TEXT"
    assert DIALECTS["postgresql"].type_of(ArrayType(LongType())) == "TEXT"


def test_what_the_url_says_goes_first_and_the_password_is_not_in_it() -> None:
    options = connection_options(parse_database("postgresql://me:secret@db/shop?connectTimeout=3"))
    assert "connectTimeout" not in options
    assert "connectTimeout=3" in options["url"]
    assert (options["user"], options["password"]) == ("me", "secret")
    assert "secret" not in options["url"]


def test_spark_must_know_mariadb_as_mysql() -> None:
    """For any other scheme it quotes names as PostgreSQL does, and MariaDB takes those for texts."""
    assert connection_options(parse_database("mariadb://me@db/shop"))["url"] == (
        "jdbc:mysql://db:3306/shop?permitMysqlScheme"
    )
