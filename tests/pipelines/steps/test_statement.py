"""What a SELECT is made of."""

import pytest

from millstream.pipelines.spark.steps.statement import (
    EventWindow,
    equal_columns,
    event_window,
    keeps_time,
    with_columns,
)

HIDDEN = ("_origin", "_error")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a FROM stream", "SELECT a\n, @ FROM stream"),
        ("select a from STREAM as s where a > 1", "select a\n, @s from STREAM as s where a > 1"),
        (
            "SELECT s.a, u.b FROM stream s LEFT JOIN users u ON s.id = u.id",
            "SELECT s.a, u.b\n, @s FROM stream s LEFT JOIN users u ON s.id = u.id",
        ),
        ("SELECT a -- all of it\nFROM stream", "SELECT a -- all of it\n, @ FROM stream"),
        (
            "SELECT a IS DISTINCT FROM b AS c, extract(YEAR FROM t) y FROM stream",
            "SELECT a IS DISTINCT FROM b AS c, extract(YEAR FROM t) y\n, @ FROM stream",
        ),
        ("SELECT explode(x) AS y FROM stream", "SELECT explode(x) AS y\n, @ FROM stream"),
        (
            "SELECT a FROM stream WHERE a IN (SELECT max(a) FROM users)",
            "SELECT a\n, @ FROM stream WHERE a IN (SELECT max(a) FROM users)",
        ),
        ("SELECT u.* FROM stream, users u", "SELECT u.*\n, @ FROM stream, users u"),
    ],
)  # fmt: skip
def test_a_plain_statement_takes_hidden_columns_along(sql: str, expected: str) -> None:
    whole = expected.replace("@s", "`s`.`_origin`, `s`.`_error`").replace("@", "`stream`.`_origin`, `stream`.`_error`")
    assert with_columns(sql, HIDDEN) == whole


@pytest.mark.parametrize("sql", ["SELECT * FROM stream", "SELECT s.*, u.b FROM stream s JOIN users u ON s.id = u.id"])
def test_a_star_has_them_already(sql: str) -> None:
    assert with_columns(sql, HIDDEN) == sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT a FROM stream",
        "SELECT a, count(*) FROM stream GROUP BY a",
        "SELECT max(a) FROM stream",
        "SELECT a FROM stream UNION ALL SELECT a FROM stream",
        "SELECT a, row_number() OVER (ORDER BY a) FROM stream",
        "SELECT a FROM (SELECT a FROM stream)",
        "WITH x AS (SELECT a FROM stream) SELECT a FROM x",
        "SELECT a FROM users",
        "SELECT a FROM other.stream",
        "SELECT x.a FROM stream x JOIN stream y ON x.a = y.a",
        "SELECT a FROM stream JOIN clicks USING (id)",
        "SELECT a FORM stream",
        "VALUES (1)",
        "not SQL at all ' (",
    ],
)
def test_what_is_not_plain_stays_as_it_is(sql: str) -> None:
    assert with_columns(sql, HIDDEN, streaming=["clicks"]) is None


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT count(*) FROM stream GROUP BY window(t, '5 minutes')", EventWindow("5 minutes")),
        (
            "SELECT window.start, k FROM stream GROUP BY k, WINDOW(stream.t, '5 minutes', '1 minute', '30 seconds')",
            EventWindow("5 minutes", "1 minute", "30 seconds"),
        ),
        ("SELECT k FROM stream GROUP BY k, session_window(t, INTERVAL 5 MINUTES)", EventWindow(gap="5 MINUTES")),
        ("SELECT k FROM stream GROUP BY k, window(other, '5 minutes')", None),
        ("SELECT k FROM stream GROUP BY k, session_window(t, CASE WHEN k THEN '1 minute' END)", None),
        ("SELECT k FROM stream GROUP BY k", None),
    ],
)
def test_a_window_over_the_event_time_is_found(sql: str, expected: EventWindow | None) -> None:
    assert event_window(sql, "T") == expected


@pytest.mark.parametrize(
    ("sql", "keeps"),
    [
        ("SELECT t, count(*) FROM stream GROUP BY t", True),
        ("SELECT k, count(*) FROM stream GROUP BY k", False),
        ("SELECT count(*) FROM stream", False),
        ("SELECT DISTINCT k, t FROM stream", True),
        ("SELECT DISTINCT * FROM stream", True),
        ("SELECT DISTINCT k FROM stream", False),
        ("SELECT a FROM stream JOIN clicks USING (id)", True),
        ("SELECT a FORM stream", False),
    ],
)
def test_whether_late_rows_are_dropped_by_the_event_time_itself(sql: str, keeps: bool) -> None:
    assert keeps_time(sql, "t") is keeps


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("stream.id = users.id", ("id",)),
        ("users.id = STREAM.ID AND stream.a = users.b AND (stream.t = users.t)", ("id", "t")),
        ("stream.id = users.id OR stream.a = users.a", ()),
        ("stream.id > users.id AND stream.id = 5", ()),
        ("stream.id = stream.id", ()),
        ("a = ", ()),
    ],
)
def test_columns_that_a_condition_makes_equal(condition: str, expected: tuple[str, ...]) -> None:
    assert tuple(name.lower() for name in equal_columns(condition, "stream", "users")) == expected
