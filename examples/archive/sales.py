"""Sales of two regions, a topic for each; their time runs fast, so that hours pass while one watches."""

from __future__ import annotations

import json
import math
import random
from datetime import UTC, datetime, timedelta

from example_kit import Run
from example_kit.clients import quiet
from example_kit.pace import paced
from example_kit.sending import Sender

SHOPS = {"sales-north": ("Harbour", "Mill Lane"), "sales-south": ("Market", "Station", "Vineyard")}
"""Topic -> its shops."""
HOURS_A_SECOND = 1.0
HOUR = "%Y-%m-%d %H:00"


class Till:
    """Makes sales, at the rate that the run's options say.

    `now` is the time in the shops, `sold` how many sales the log has acknowledged.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        # Never ahead of the clock: a log refuses the future.
        hours = 1 + math.ceil(run.options.seconds * HOURS_A_SECOND)
        self.now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=max(24, hours))
        self.sold = 0

    def sell(self, seconds: float) -> None:
        rate = self._run.options.rate
        sender = Sender(quiet(self._run.bootstrap))
        for _ in paced(seconds, rate):
            self.now += timedelta(hours=HOURS_A_SECOND / rate)
            topic = random.choice(list(SHOPS))
            shop = random.choice(SHOPS[topic])
            sale = {"shop": shop, "cents": random.randint(50, 9999)}
            sender.send(topic, json.dumps(sale), key=shop, timestamp=int(self.now.timestamp() * 1000))
        sold = sender.finish()
        self.sold += sold
        self._run.say(f"{sold:,} more sales, until {self.now:%H:%M} in the shops")
