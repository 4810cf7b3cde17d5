"""A database table copied to another database and to files while it grows, by way of a topic

Orders come into table `orders` of a shop's database. A pipeline (pipelines/etl.yaml) finds new rows by their growing id
and sends them to topic `shop-orders`; a second one takes them from there into the warehouse's database, where it makes
the table, and to Parquet files. In the middle both are stopped, while the shop goes on. In the end the warehouse's
table is exported to CSV, and all copies are compared with the shop's table, row by row.

The databases are SQLite's, and the files local; with --real they are MariaDB's, and on HDFS.
"""

from __future__ import annotations

from pathlib import Path

from etl.copies import Copy, copy, export, exported
from etl.databases import Database, Order, databases
from example_kit import Run, create_topic, options_parser, running
from example_kit.catching_up import wait_until, wait_until_read
from example_kit.pace import paced
from example_kit.pipelines import Pipelines, running_pipelines

TOPIC = "shop-orders"
PIPELINES = Path(__file__).parent / "pipelines" / "etl.yaml"
AT_A_TIME = 10
"""Orders in one of the shop's transactions."""


def main(argv: list[str]) -> int:
    parser = options_parser("etl", __doc__, seconds=6, rate=100, of="orders", real=True)
    options = parser.parse_args(argv)
    with running(options) as run, databases(run) as (shop, warehouse), copy(run) as files:
        create_topic(run.bootstrap, TOPIC, partitions=2, fresh=True)
        shop.create_orders()
        shop.take_orders(int(options.rate))
        run.say(f"the shop has {options.rate:,.0f} orders from before")
        environment = {"ETL_SHOP": shop.url, "ETL_WAREHOUSE": warehouse.url, "ETL_COPY": files.url}
        for part in ("first", "second"):
            run.say(f"starting Spark for the {part} time, which takes a while")
            with running_pipelines(run, [PIPELINES], environment, fresh=part == "first") as pipelines:
                take_orders(run, shop, options.seconds / 3)
                catch_up(run, pipelines, shop, warehouse)
            if part == "first":
                take_orders(run, shop, options.seconds / 3)
                run.say("the pipelines were stopped, and have not seen these yet")
        report(run, shop, warehouse, files)
    return 0


def take_orders(run: Run, shop: Database, seconds: float) -> None:
    """Orders come into the shop, at the rate, for so long."""
    for _ in paced(seconds, run.options.rate / AT_A_TIME):
        shop.take_orders(AT_A_TIME)
    run.say(f"the shop has {shop.last_id():,} orders now")


def catch_up(run: Run, pipelines: Pipelines, shop: Database, warehouse: Database) -> None:
    """Until the warehouse has what the shop has."""
    wanted = shop.last_id()
    wait_until(pipelines, lambda: warehouse.last_id() >= wanted, f"the warehouse has not got order {wanted}")
    wait_until_read(pipelines, run.bootstrap, {"shop-orders-in": [TOPIC]})
    run.say(f"the warehouse has all {wanted:,} of them")


def report(run: Run, shop: Database, warehouse: Database, files: Copy) -> None:
    """Exports, and compares row by row."""
    right = shop.orders()
    export(warehouse.orders(), run.out / "orders.csv")
    run.say(f"the warehouse's table is exported to {run.out / 'orders.csv'}; comparing all copies row by row")
    copies = {"warehouse": warehouse.orders(), "files": files.orders(), "csv": exported(run.out / "orders.csv")}
    run.report(
        {
            "orders": len(right),
            **{name: compare(right, rows) for name, rows in copies.items()},
            "export": str(run.out / "orders.csv"),
        },
        "Database ETL",
    )


def compare(right: list[Order], rows: list[Order]) -> dict[str, int]:
    ids = {order.id for order in right}
    found = {row.id: row for row in rows}
    return {
        "rows": len(rows),
        "missing": len(ids - found.keys()),
        "doubled": len(rows) - len(found),
        "different": sum(found.get(order.id, order) != order for order in right) + len(found.keys() - ids),
    }
