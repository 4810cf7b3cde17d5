"""Topics archived in Parquet files for ever, over kill -9, and a lambda query over archive and live data

Shops sell; each region's sales are a topic. Pipeline `archive` writes every record to Parquet files in folders by
topic, date and hour; pipeline `speed` keeps each shop's sales per hour in SQLite, up to the second. In the middle both
are killed, with Spark. Started again, they go on as if nothing had been; and pipeline `batch` reads the archive back,
as a batch, for all hours that are over. One SQL query puts batch and speed layer together.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from archive.check import compare_archive, lambda_answer, right_answer, sales_in
from archive.sales import HOUR, SHOPS, Till
from example_kit import create_topic, options_parser, running
from example_kit.catching_up import wait_until, wait_until_read
from example_kit.pipelines import running_pipelines

FOLDER = Path(__file__).parent / "pipelines"
KEEP = {"retention.ms": "-1"}
"""The sales are of the days before, and all are needed for the comparison at the end."""
BOTH = [FOLDER / "archive.yaml", FOLDER / "speed.yaml"]


def main(argv: list[str]) -> int:
    options = options_parser("archive", __doc__, seconds=8, rate=200, of="sales").parse_args(argv)
    with running(options) as run:
        for topic in SHOPS:
            create_topic(run.bootstrap, topic, partitions=2, config=KEEP, fresh=True)
        files, views = run.out / "archive", run.out / "views.db"
        shutil.rmtree(files, ignore_errors=True)
        views.unlink(missing_ok=True)
        environment = {"ARCHIVE": str(files), "VIEWS": f"sqlite:///{views}"}
        quarter = options.seconds / 4
        till = Till(run)

        run.say("starting Spark, which takes a while")
        with running_pipelines(run, BOTH, environment) as pipelines:
            till.sell(quarter)
            wait_until_read(pipelines, run.bootstrap, {"archive": SHOPS, "speed": SHOPS})
            before = till.now.strftime(HOUR)
            run.say("all of them are in the archive")
            till.sell(quarter)
            pipelines.kill()
            run.say("kill -9: pipelines and Spark are gone, in the middle of their work", "red")
        till.sell(quarter)

        run.say(f"starting Spark again, and the batch layer for all hours before {before}")
        environment["BEFORE"] = before
        with running_pipelines(run, [*BOTH, FOLDER / "batch.yaml"], environment, fresh=False) as pipelines:
            till.sell(quarter)
            wait_until_read(pipelines, run.bootstrap, {"archive": SHOPS, "speed": SHOPS})
            wait_until(
                pipelines, lambda: pipelines.status["batch"]["state"] == "stopped", "the batch layer has not finished"
            )
            run.say("everything is archived and counted; Spark stops")

        answer, right = lambda_answer(views, before), right_answer(run.bootstrap, SHOPS)
        run.report(
            {
                "sales_made": till.sold,
                "archive": compare_archive(run.bootstrap, SHOPS, files),
                "lambda": {
                    "batch_layer_before": before,
                    "sales_from_batch_layer": sales_in(views, "batch_view"),
                    "sales_from_speed_layer": sales_in(views, "speed_view"),
                    "shops": len(right),
                    "shops_wrong": sum(answer.get(shop) != right.get(shop) for shop in {*answer, *right}),
                },
                "sold": {
                    shop: f"{sales:,} sales, {cents / 100:,.2f}" for shop, (sales, cents) in sorted(answer.items())
                },
            },
            "Archive",
        )
    return 0
