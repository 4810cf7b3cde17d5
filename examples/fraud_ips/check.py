"""What should have come out, from the topic itself and in plain Python, beside what has come out."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.dataset

from example_kit.reading import read_topic, text
from fraud_ips.alerts import TOPIC as FRAUD
from fraud_ips.replay import LINE, TIME
from fraud_ips.stores import fraud_ranges

WINDOW_HOURS = 6
COLUMNS = ["ip", "date", "request_url", "protocol_type", "status_code"]
Row = tuple[Any, ...]
SHARES = """
SELECT replace(substr(window_start, 1, 16), 'T', ' '), requests, fraud, round(100.0 * fraud / requests, 1)
FROM fraud_windows ORDER BY window_start
"""


class Expected(NamedTuple):
    """What follows from the lines that are in the topic. A row has the values of `COLUMNS`."""

    requests: Counter[Row]
    fraud: Counter[Row]
    windows: dict[datetime, tuple[int, int]]
    malformed: int


def expected(bootstrap: str, topic: str) -> Expected:
    ranges = fraud_ranges()
    found = Expected(Counter(), Counter(), {}, 0)
    malformed = 0
    for record in read_topic(bootstrap, topic):
        match = LINE.fullmatch(text(record.value()))
        if match is None:
            malformed += 1
            continue
        moment = datetime.strptime(match["time"], TIME)
        row = (match["ip"], str(moment.date()), match["url"], match["protocol"], int(match["status"]))
        is_fraud = match["ip"].partition(".")[0] in ranges
        found.requests[row] += 1
        found.fraud[row] += is_fraud
        moment = moment.astimezone(UTC)
        window = moment.replace(minute=0, second=0) - timedelta(hours=moment.hour % WINDOW_HOURS)
        requests, fraud = found.windows.get(window, (0, 0))
        found.windows[window] = (requests + 1, fraud + is_fraud)
    return found._replace(malformed=malformed)


def rows_in(folder: Path) -> Counter[Row]:
    """The rows of a table, or of files."""
    table = pyarrow.dataset.dataset(folder, partitioning="hive").to_table(COLUMNS)
    return Counter((row["ip"], str(row["date"]), *list(row.values())[2:]) for row in table.to_pylist())


def rows_in_topic(bootstrap: str) -> Counter[Row]:
    values = (json.loads(text(record.value())) for record in read_topic(bootstrap, FRAUD))
    return Counter(tuple(value[name] for name in COLUMNS) for value in values)


def windows_in(database: Path) -> list[tuple[str, int, int, float]]:
    """(begin, requests, fraud, share in per cent) of each window: a question that SQL answers at any time."""
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(SHARES).fetchall()
