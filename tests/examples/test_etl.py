"""Example etl: the comparison, the export, and all of it over a restart."""

import csv
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from etl.copies import export, exported
from etl.databases import COLUMNS, Database, Order
from etl.example import compare
from example_kit.reading import read_topic

ORDERS = [Order(1, "Ada", 'a "b", c', 2, 300, None), Order(2, "Björn", "d\ne", 1, 5, "")]


def test_the_comparison_finds_what_is_wrong() -> None:
    assert compare(ORDERS, ORDERS) == {"rows": 2, "missing": 0, "doubled": 0, "different": 0}
    assert compare(ORDERS, [ORDERS[0], ORDERS[0]]) == {"rows": 2, "missing": 1, "doubled": 1, "different": 0}
    other = ORDERS[1]._replace(note=None)
    assert compare(ORDERS, [ORDERS[0], other])["different"] == 1
    assert compare(ORDERS[:1], ORDERS)["different"] == 1


def test_an_export_is_read_back_as_it_was(tmp_path: Path) -> None:
    export(ORDERS, tmp_path / "orders.csv")
    assert exported(tmp_path / "orders.csv") == ORDERS


def test_a_database_numbers_its_orders(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'shop.db'}")
    assert database.last_id() == 0
    database.create_orders()
    database.take_orders(3)
    assert [order.id for order in database.orders()] == [1, 2, 3]
    assert database.last_id() == 3


def test_a_shop_whose_database_is_locked_takes_the_orders_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("etl.databases.ANSWER_SECONDS", 0.0)
    database = Database(f"sqlite:///{tmp_path / 'shop.db'}")
    database.create_orders()
    with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr("etl.databases.PATIENCE_SECONDS", 0.0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            database.take_orders(3)
        monkeypatch.setattr("etl.databases.PATIENCE_SECONDS", 60.0)
        monkeypatch.setattr("etl.databases.time.sleep", lambda seconds: other.execute("ROLLBACK"))
        database.take_orders(3)
    assert [order.id for order in database.orders()] == [1, 2, 3]


def test_a_mistake_is_not_taken_for_a_database_that_is_away(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        Database(f"sqlite:///{tmp_path / 'shop.db'}").orders()


@pytest.mark.timeout(300)  # starting Spark takes its time
@pytest.mark.usefixtures("spark_jars")
def test_all_copies_are_the_same_over_a_restart(example: Any, log: str) -> None:
    report = example("etl", "--bootstrap", log, "--seconds", "3", "--rate", "100")
    assert report["orders"] == 400
    right = {"rows": 400, "missing": 0, "doubled": 0, "different": 0}
    assert [report[name] for name in ("warehouse", "files", "csv")] == [right] * 3
    shop, warehouse = (_rows(example.out / f"{name}.db") for name in ("shop", "warehouse"))
    assert shop == warehouse
    table = pyarrow.parquet.read_table([str(file) for file in (example.out / "copy").glob("*.parquet")])
    assert sorted(row["id"] for row in table.to_pylist()) == [row[0] for row in shop]
    with Path(report["export"]).open(newline="") as file:
        assert len(list(csv.reader(file))) == 401
    assert sum(1 for _ in read_topic(log, "shop-orders")) == 400


def _rows(file: Path) -> list[Any]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(f"SELECT {COLUMNS} FROM orders ORDER BY id").fetchall()
