"""The same flow as Spark pipelines: they are the YAML files in `pipelines`; here is only what is around them.

The clicks go to a database and to a table of Parquet files (to MariaDB and Cassandra with real stores), and are counted
per campaign and minute. The pipelines commit their progress to groups of their names, so the watch sees their lag like
that of any group.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.dataset

from clicks.check import clicks_in, compare, compare_rows, minutes_in
from clicks.click import Click
from clicks.experiments import Settings, tell_comparison
from clicks.stage import Stage
from clicks.stores import title_of
from clicks.stores.mariadb import connect
from example_kit import ExampleError
from example_kit.pipelines import Pipelines, running_pipelines

FOLDER = Path(__file__).parent / "pipelines"
COUNTING = "clicks-per-minute"
DRAIN_SECONDS = 180.0


def spark(stage: Stage, settings: Settings) -> dict[str, Any]:
    """Runs the pipelines on the clicks, checks every row; the report."""
    saving = "clicks-real" if stage.places.servers else "clicks"
    table = stage.run.out / "stores" / "table"
    environment = {
        "CLICKS_DATABASE": _database(stage.places.mysql),
        "CLICKS_TABLE": str(table),
        "CLICKS_CASSANDRA": stage.places.persistor.removeprefix("cassandra://").partition("/")[0],
    }
    stage.run.say("starting Spark, which takes a while")
    files = [FOLDER / f"{name}.yaml" for name in (saving, COUNTING)]
    with running_pipelines(stage.run, files, environment) as pipelines:
        for name, status in pipelines.status.items():
            for query in status["queries"]:
                stage.run.say(f"pipeline {name} runs in {query['mode']} mode: {query['why']}")
            stage.watch.add(f"millstream-{name}")
        stage.start_generator(settings.seconds, settings.rate, settings.malformed_every, settings.seed)
        _play(stage, pipelines, lambda: stage.generator_started)
        stage.event(f"the generator makes {settings.rate:,.0f} clicks a second", "the generator starts")
        _play(stage, pipelines, lambda: stage.generator_done)
        stage.event(f"{stage.made:,} clicks are made; the pipelines read what is left", "the generator has stopped")
        stopped = stage.clock()
        _play(stage, pipelines, lambda: all(stage.drained(f"millstream-{name}", stopped) for name in pipelines.status))
        stage.event(f"all is saved, {stage.clock() - stopped:.1f} s later", "all is saved")
    stage.stop()
    plot = stage.draw("Clicks through Spark pipelines", "spark.png")
    return _report(stage, table, plot)


def _play(stage: Stage, pipelines: Pipelines, until: Callable[[], bool]) -> None:
    """Lets time pass until that is so; an error if it takes too long, or a pipeline fails."""

    def done() -> bool:
        pipelines.check()
        return until()

    if not stage.play(done, stage.seconds + DRAIN_SECONDS):
        raise ExampleError(f"the pipelines have not read all clicks within {DRAIN_SECONDS:.0f} s (see {pipelines.log})")


def _database(store: str) -> str:
    """The URL of a store as pipelines write it."""
    scheme, _, address = store.partition(":")
    return f"sqlite:///{address}" if scheme == "sqlite" else store


def _report(stage: Stage, table: Path, plot: Path) -> dict[str, Any]:
    stage.run.say("comparing every click in the topic with every row in the stores, and every minute's counts")
    clicks, malformed = clicks_in(stage.run.bootstrap)
    report: dict[str, Any] = {
        "clicks_made": stage.made,
        "made_a_second": round(stage.made / stage.made_seconds),
        "malformed": malformed,
    }
    found = {title_of(stage.places.mysql): compare(clicks, stage.places.mysql)}
    if stage.places.servers:
        found[title_of(stage.places.persistor)] = compare(clicks, stage.places.persistor)
    else:
        found["table"] = compare_rows(clicks, _rows(table))
    for name, comparison in found.items():
        report[name] = comparison._asdict()
        tell_comparison(stage.run, name, comparison, len(clicks))
    counted = _counted(stage.places.mysql)
    made = minutes_in(stage.run.bootstrap)
    report["minutes"] = {"counted": len(counted), "wrong": sum(counted[key] != made[key] for key in {*counted, *made})}
    report["plot"] = str(plot)
    return report


def _rows(table: Path) -> list[Click]:
    """What is in a table's Parquet files."""
    found = pyarrow.dataset.dataset(table, partitioning="hive").to_table(list(Click._fields))
    return [Click(*row.values()) for row in found.to_pylist()]


def _counted(store: str) -> Counter[tuple[int, int]]:
    """What the pipeline has counted: (minute, campaign) -> clicks; a minute in milliseconds since 1970."""
    statement = "SELECT window_start, campaign_id, clicks FROM clicks_per_minute"
    if store.startswith("sqlite:"):
        with closing(sqlite3.connect(store.removeprefix("sqlite:"))) as connection:
            rows = connection.execute(statement).fetchall()
    else:
        with closing(connect(store)) as mariadb, mariadb.cursor() as cursor:
            cursor.execute(statement)
            rows = list(cursor.fetchall())
    return Counter({(_milliseconds(minute), campaign): clicks for minute, campaign, clicks in rows})


def _milliseconds(moment: str | datetime) -> int:
    """A moment in UTC, as SQLite keeps it or as MariaDB does."""
    moment = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return int(moment.replace(tzinfo=UTC).timestamp() * 1000)
