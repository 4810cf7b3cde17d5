"""Web-server access-log lines, replayed: those of `access.log`, again and again, each time a day later in the server's
time and from random addresses."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

SAMPLE = Path(__file__).with_name("access.log")
TIME = "%d/%b/%Y:%H:%M:%S %z"
LINE = re.compile(
    r'(?P<ip>\S+) - - \[(?P<time>[^]]+)\] (?P<rest>"\S+ (?P<url>\S+) (?P<protocol>\S+)" (?P<status>\d+) \S+)'
)


def lines(seed: int | None = None) -> Iterator[tuple[str, str]]:
    """(address, line) without end; lines that are none (the sample has some) come as they are, from nowhere."""
    chance = random.Random(seed)
    sample = SAMPLE.read_text().splitlines()
    day = 0
    while True:
        for line in sample:
            found = LINE.fullmatch(line)
            if found is None:
                yield "", line
                continue
            moment = datetime.strptime(found["time"], TIME) + timedelta(days=day)
            ip = ".".join(map(str, [chance.randint(1, 223), *(chance.randint(0, 255) for _ in range(3))]))
            yield ip, f"{ip} - - [{moment.strftime(TIME)}] {found['rest']}"
        day += 1
