"""The archive record by record beside the topics, and the answers of the layers beside plain Python's."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.dataset

from example_kit.reading import read_topic, text

Answer = dict[str, tuple[int, int]]
"""Shop -> how many sales, and how much in cents."""

LAMBDA = """
SELECT shop, sum(sales), sum(cents) FROM (
    SELECT shop, sales, cents FROM batch_view
    UNION ALL
    SELECT shop, sales, cents FROM speed_view WHERE hour >= ?
) GROUP BY shop
"""
"""One answer out of two layers: the batch layer's before an hour, the speed layer's from that hour on."""


def compare_archive(bootstrap: str, topics: Iterable[str], folder: Path) -> dict[str, Any]:
    """Every record of the topics with every row of the archive."""
    wanted = {
        (topic, record.partition(), record.offset()): (text(record.key()), text(record.value()))
        for topic in topics
        for record in read_topic(bootstrap, topic)
    }
    files = pyarrow.dataset.dataset(folder, partitioning="hive")
    rows = files.to_table(["topic", "partition", "offset", "key", "value"]).to_pylist()
    found = Counter((row["topic"], row["partition"], row["offset"]) for row in rows)
    values = {(row["topic"], row["partition"], row["offset"]): (row["key"], row["value"]) for row in rows}
    return {
        "records": len(wanted),
        "archived": len(rows),
        "missing": len(wanted.keys() - found.keys()),
        "doubled": sum(times - 1 for times in found.values()),
        "different": sum(value != wanted.get(place) for place, value in values.items()),
        "files": len(files.files),
        "folders": len({str(Path(file).parent) for file in files.files}),
    }


def right_answer(bootstrap: str, topics: Iterable[str]) -> Answer:
    """From the topics, which in this example still have everything."""
    answer: Answer = {}
    for topic in topics:
        for record in read_topic(bootstrap, topic):
            sale = json.loads(text(record.value()))
            sales, cents = answer.get(sale["shop"], (0, 0))
            answer[sale["shop"]] = (sales + 1, cents + sale["cents"])
    return answer


def lambda_answer(views: Path, before: str) -> Answer:
    """From both layers. The speed layer forgets first what the batch layer knows: it is small because it may."""
    with closing(sqlite3.connect(views, timeout=30)) as connection, connection:
        connection.execute("DELETE FROM speed_view WHERE hour < ?", [before])
        return {shop: (sales, cents) for shop, sales, cents in connection.execute(LAMBDA, [before])}


def sales_in(views: Path, view: str) -> int:
    """How many sales a layer knows of."""
    with closing(sqlite3.connect(views, timeout=30)) as connection:
        return int(connection.execute(f"SELECT coalesce(sum(sales), 0) FROM {view}").fetchone()[0])
