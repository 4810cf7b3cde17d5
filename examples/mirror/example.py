"""Topics of several clusters mirrored to another one, exactly once, with group positions

Three clusters, `east`, `west` and `central`, and four mirrors between them:

    east  --- orders.* ---> central (as east.orders, ...)   killed with -9 again and again
    west  --- orders.* ---> central (as west.orders, ...)
    east <--- profiles ---> west    (in both directions, under the same name)

Without a command it shows all that, checks it and stops. The commands are for clusters of your own:

    copy   one mirror, until Ctrl-C      (--source, --target, --topics, ...)
    lag    how far a mirror is behind    (--source, --target, --topics)
"""

from __future__ import annotations

import argparse
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from example_kit import Child, ExampleError, Run, create_topic, options_parser, running, started_cluster
from example_kit.options import ENGINES
from mirror.checks import Billing, content, differences
from mirror.copier import Cluster, Mirror, add_arguments, plan_from
from mirror.groups import carried
from mirror.lag import lag_table, lags, offset_table
from mirror.orders import Orders, write_profiles

KILLS = 3
PROFILES = 200
PARTITIONS = 3
CATCH_UP_SECONDS = 60.0
PROFILES_ONLY = ("--topics", "profiles", "--rename", "{topic}")
ORDERS_AND_GROUPS = ("--topics", "orders.*", "--groups", "billing")


def main(argv: list[str]) -> int:
    parser = options_parser("mirror", __doc__, seconds=8, rate=1000, of="orders")
    parser.add_argument("command", nargs="?", choices=("demo", "copy", "lag"), default="demo")
    parser.add_argument("--sources", choices=ENGINES, default="embedded", help="the engine of east and west")
    parser.add_argument("--east", metavar="HOST:PORT", help="use this cluster as east; --bootstrap is central")
    parser.add_argument("--west", metavar="HOST:PORT", help="use this cluster as west")
    add_arguments(parser.add_argument_group("copy and lag"))
    options = parser.parse_args(argv)
    return {"demo": demo, "copy": copy, "lag": show_lag}[options.command](options)


def copy(options: argparse.Namespace) -> int:
    """One mirror, until Ctrl-C; it says what it does, and every second how much it has copied."""
    copied, told = 0, time.monotonic()

    def say(**event: Any) -> None:
        nonlocal copied, told
        copied += event.get("copied", 0)
        if "copied" not in event:
            print(", ".join(f"{name} {value}" for name, value in event.items()), flush=True)
        elif time.monotonic() - told > 1:
            print(f"{copied:,} records copied", flush=True)
            told = time.monotonic()

    Mirror(plan_from(options), say).run(threading.Event())
    return 0


def show_lag(options: argparse.Namespace) -> int:
    from rich.console import Console

    plan = plan_from(options)
    Console().print(lag_table(plan.source, plan.target, lags(plan.source, plan.target, plan.topics)))
    return 0


def demo(options: argparse.Namespace) -> int:
    with running(options) as run, ExitStack() as stack:
        east = Cluster("east", options.east or stack.enter_context(started_cluster(options.sources)))
        west = Cluster("west", options.west or stack.enter_context(started_cluster(options.sources)))
        central = Cluster("central", run.bootstrap)
        for cluster in (east, west):
            create_topic(
                cluster.bootstrap, "orders", partitions=PARTITIONS, config={"retention.ms": "86400000"}, fresh=True
            )
            create_topic(cluster.bootstrap, "profiles", partitions=2, config={"cleanup.policy": "compact"}, fresh=True)
        run.say(f"east is {east.bootstrap}, west {west.bootstrap}, central {central.bootstrap}")
        to_central = stack.enter_context(mirror(run, east, central, *ORDERS_AND_GROUPS))
        stack.enter_context(mirror(run, west, central, *ORDERS_AND_GROUPS))
        stack.enter_context(mirror(run, east, west, *PROFILES_ONLY))
        stack.enter_context(mirror(run, west, east, *PROFILES_ONLY))
        return Story(run, east, west, central, to_central).tell()


class Supervised:
    """A mirror process that can be killed and started again."""

    def __init__(self, run: Run, source: Cluster, target: Cluster, arguments: tuple[str, ...]) -> None:
        self._run = run
        self.name = f"mirror {source.name} to {target.name}"
        ends = (f"--source={source.name}={source.bootstrap}", f"--target={target.name}={target.bootstrap}")
        self._arguments = (*ends, *arguments)
        self._log = run.out / f"{self.name.replace(' ', '-')}.log"
        self.copied = 0
        self.child = self._start()

    def _start(self) -> Child:
        return Child("mirror.copier", self._arguments, hear=self._hear, log=self._log)

    def _hear(self, event: dict[str, Any]) -> None:
        self.copied += event.get("copied", 0)
        if "topic" in event:
            self._run.say(f"{self.name}: found topic {event['topic']}, copies it to {event['target']}")
        if "trouble" in event:
            self._run.say(f"{self.name}: {event['trouble']}", "yellow")

    def kill(self) -> None:
        self.child.kill()
        self._run.say(f"{self.name}: killed with -9 after {self.copied:,} records, and started again", "yellow")
        self.child = self._start()


@contextmanager
def mirror(run: Run, source: Cluster, target: Cluster, *arguments: str) -> Iterator[Supervised]:
    supervised = Supervised(run, source, target, arguments)
    try:
        yield supervised
    finally:
        supervised.child.stop()


class Story:
    """What happens in the demo, in order."""

    def __init__(self, run: Run, east: Cluster, west: Cluster, central: Cluster, to_central: Supervised) -> None:
        self._run = run
        self._east = east
        self._west = west
        self._central = central
        self._to_central = to_central

    def tell(self) -> int:
        seconds, rate = self._run.options.seconds, self._run.options.rate / 2
        orders = [
            Orders(cluster.bootstrap, cluster.name, "orders", rate=rate, seconds=seconds)
            for cluster in (self._east, self._west)
        ]
        for thread in orders:
            thread.start()
        write_profiles(self._east.bootstrap, "east", PROFILES)
        write_profiles(self._west.bootstrap, "west", PROFILES)
        before = Billing(self._east.bootstrap, "orders")
        billing = threading.Thread(target=before.work, args=(int(rate * seconds * 0.4),), daemon=True)
        billing.start()
        for number in range(KILLS):
            time.sleep(seconds / (KILLS + 1))
            self._to_central.kill()
            if number == 0:
                self._new_topic()
        for order_thread in orders:
            order_thread.join()
        billing.join()
        self._catch_up()
        after = self._move_billing(before)
        return self._report(orders, before, after)

    def _new_topic(self) -> None:
        create_topic(self._east.bootstrap, "orders-returned", partitions=2)
        self._run.say("east has a new topic, orders-returned")
        Orders(self._east.bootstrap, "returned", "orders-returned", rate=200, seconds=0.5).run()

    def _catch_up(self) -> None:
        """Until every mirror has copied all there is, and carried the group."""
        routes = [
            (self._east, self._central, "orders.*"),
            (self._west, self._central, "orders.*"),
            (self._east, self._west, "profiles"),
            (self._west, self._east, "profiles"),
        ]
        deadline = time.monotonic() + CATCH_UP_SECONDS
        while time.monotonic() < deadline:
            found = [lags(source, target, re.compile(topics)) for source, target, topics in routes]
            if not any(row.behind for rows in found for row in rows) and self._group_is_carried():
                break
            time.sleep(0.2)
        for (source, target, _), rows in zip(routes, found, strict=True):
            self._run.console.print(lag_table(source, target, rows))
        if any(row.behind for rows in found for row in rows):
            raise ExampleError(
                f"the mirrors did not catch up within {CATCH_UP_SECONDS:.0f} s; see {self._run.out}/*.log"
            )

    def _group_is_carried(self) -> bool:
        table = offset_table(self._east, self._central)
        names = {("orders", number): "east.orders" for number in range(PARTITIONS)}
        return carried(self._east.bootstrap, self._central.bootstrap, table, names, "billing")

    def _move_billing(self, before: Billing) -> Billing:
        self._run.say(f"group billing has billed {len(before.billed):,} orders on east and moves to central")
        after = Billing(self._central.bootstrap, "east.orders")
        after.work()
        return after

    def _report(self, orders: list[Orders], before: Billing, after: Billing) -> int:
        pairs = [("east", "orders"), ("west", "orders"), ("east", "orders-returned")]
        at = {"east": self._east.bootstrap, "west": self._west.bootstrap}
        different = sum(
            differences(content(at[name], topic), content(self._central.bootstrap, f"{name}.{topic}"))
            for name, topic in pairs
        )
        profiles = [
            Counter(record[0] for part in content(at[name], "profiles").values() for record in part) for name in at
        ]
        all_profiles: Counter[object] = Counter(
            f"{name}-{number}".encode() for name in at for number in range(PROFILES)
        )
        billed = Counter([*before.billed, *after.billed])
        values = {
            "orders_written": {"east": len(orders[0].written), "west": len(orders[1].written)},
            "orders_aborted_on_the_sources": sum(thread.aborted for thread in orders),
            "mirror_killed": KILLS,
            "records_that_differ": different,
            "profiles_on_each_side": [sum(found.values()) for found in profiles],
            "profiles_lost_or_doubled": sum(
                (found - all_profiles).total() + (all_profiles - found).total() for found in profiles
            ),
            "orders_billed": {"on_east": len(before.billed), "then_on_central": len(after.billed)},
            "orders_skipped_by_the_move": len(set(orders[0].written) - billed.keys()),
            "orders_billed_twice": sum(times > 1 for times in billed.values()),
        }
        self._run.report(values, "Mirrors")
        right = not (
            different
            or values["profiles_lost_or_doubled"]
            or values["orders_skipped_by_the_move"]
            or values["orders_billed_twice"]
        )
        return 0 if right else 1
