"""People connect and message one another: delivery exactly once, usage and diagnostics live

    people -> my-connect-profiles, -connections, -messages -> delivery (two workers) -> my-connect-inboxes
                                                                                     -> my-connect-dead-letters

A table shows who is active, how many messages a minute, who is most connected, how long delivery takes, and the lag of
the groups; the same is on a Prometheus endpoint. A worker is killed with -9 on the way. With --spark two pipelines on
Spark (`pipelines/*.yaml`) analyse the usage too. For a cluster of your own: `inbox --person NAME` shows an inbox.
"""

from __future__ import annotations

import argparse
import json
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.live import Live
from rich.table import Table

from example_kit import Child, ExampleError, Run, create_topic, options_parser, running
from example_kit.pipelines import running_pipelines
from example_kit.reading import header, read_topic, text
from my_connect.diagnostics import inbox
from my_connect.topics import DEAD_LETTERS, DEGREES_SPARK, INBOXES, MESSAGES, TOPICS, USAGE_SPARK

WORKERS = ("delivery-1", "delivery-2")
SETTLED_SECONDS = 60.0
PIPELINES = sorted((Path(__file__).parent / "pipelines").glob("*.yaml"))


def main(argv: list[str]) -> int:
    parser = options_parser("my-connect", __doc__, seconds=10, rate=300, of="messages")
    parser.add_argument("command", nargs="?", choices=("demo", "inbox"), default="demo")
    parser.add_argument("--people", type=int, default=200, metavar="N", help="how many (default: 200)")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="of the metrics (default: a free one)")
    parser.add_argument("--spark", action="store_true", help="analyse the usage with Spark pipelines too")
    parser.add_argument("--person", metavar="NAME", help="whose inbox")
    options = parser.parse_args(argv)
    if options.command == "inbox":
        return show_inbox(options)
    with running(options) as run, ExitStack() as stack:
        for name, (partitions, config) in TOPICS.items():
            create_topic(run.bootstrap, name, partitions=partitions, config=config, fresh=True)
        if options.spark:
            run.say("Spark starts; that takes a while")
            stack.enter_context(running_pipelines(run, PIPELINES))
        return Story(run, stack).tell()


def show_inbox(options: argparse.Namespace) -> int:
    if not (options.bootstrap and options.person):
        raise ExampleError("say whose inbox, and where: inbox --person ada.0 --bootstrap HOST:PORT")
    for message in inbox(options.bootstrap, options.person):
        print(f"{datetime.fromtimestamp(message['sent_at']):%H:%M:%S}  {message['from']}: {message['text']}")
    return 0


class Story:
    """What happens, in order."""

    def __init__(self, run: Run, stack: ExitStack) -> None:
        self._run = run
        self._stack = stack
        self._figures: dict[str, Any] = {}
        self._metrics = ""
        self._sorts: dict[str, int] | None = None
        self._owned: dict[str, list[int]] = {}

    def tell(self) -> int:
        seconds = self._run.options.seconds
        workers = {name: self._start("delivery", "--name", name, log=name) for name in WORKERS}
        self._start("usage", "--port", str(self._run.options.port))
        self._wait_for_workers()
        people = self._start(
            "people", f"--people={self._run.options.people}", f"--rate={self._run.options.rate}", f"--seconds={seconds}"
        )
        with self._table() as show:
            self._watch(seconds / 2, show)
            workers[WORKERS[0]].kill()
            self._run.say(f"{WORKERS[0]}: killed with -9; its messages wait", "yellow")
            self._watch(seconds / 6, show)
            self._start("delivery", "--name", WORKERS[0], log=WORKERS[0])
            self._run.say(f"{WORKERS[0]}: started again")
            while people.is_running():
                self._watch(0.2, show)
            people.wait()
            self._settle(show)
        return self._report()

    def _wait_for_workers(self) -> None:
        """Until the partitions are shared out, so that latencies tell of deliveries and not of the start."""
        deadline = time.monotonic() + SETTLED_SECONDS
        while not all(self._owned.get(name) for name in WORKERS):
            if time.monotonic() > deadline:
                raise ExampleError(f"the workers did not share the partitions; see {self._run.out}/*.log")
            time.sleep(0.05)

    def _start(self, module: str, *arguments: str, log: str = "") -> Child:
        child = Child(
            f"my_connect.{module}",
            ["--bootstrap", self._run.bootstrap, *arguments],
            hear=self._hear,
            log=self._run.out / f"{log or module}.log",
        )
        self._stack.callback(_stop, child)
        return child

    def _hear(self, event: dict[str, Any]) -> None:
        if "metrics" in event:
            self._metrics = event["metrics"]
            self._run.say(f"metrics for Prometheus: {self._metrics}")
        elif "worker" in event:
            self._owned[event["worker"]] = event["partitions"]
            self._run.say(f"{event['worker']}: delivers partitions {event['partitions']}")
        elif "trouble" in event:
            self._run.say(f"the figures must wait: {event['trouble']}", "yellow")
        elif "sorts" in event:
            self._sorts = event["sorts"]
        elif "delivered" in event:
            self._figures = event

    # --- watching ---

    @contextmanager
    def _table(self) -> Iterator[Callable[[], None]]:
        """Draws the figures over and over on a terminal; says them now and then anywhere else."""
        if self._run.live:
            with Live(console=self._run.console, refresh_per_second=4) as live:
                yield lambda: live.update(table(self._figures))
            return
        said = time.monotonic()

        def say() -> None:
            nonlocal said
            if self._figures and time.monotonic() - said > 2:
                said = time.monotonic()
                self._run.say(line(self._figures))

        yield say

    def _watch(self, seconds: float, show: Callable[[], None]) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            show()
            time.sleep(0.1)

    def _settle(self, show: Callable[[], None]) -> None:
        """Until all messages are delivered or refused, and that is seen."""
        sent = sum((self._sorts or {}).values())
        deadline = time.monotonic() + SETTLED_SECONDS
        while time.monotonic() < deadline:
            figures = self._figures
            seen = figures.get("delivered", 0) + sum(figures.get("refused", {}).values())
            if seen == sent and not any(figures["lag"].values()):
                show()
                return
            self._watch(0.2, show)
        raise ExampleError(f"not all of {sent} messages were delivered or refused; see {self._run.out}/*.log")

    # --- the end ---

    def _report(self) -> int:
        bootstrap, sorts = self._run.bootstrap, self._sorts or {}
        delivered = [json.loads(record.value() or b"") for record in read_topic(bootstrap, INBOXES)]
        refused = Counter(header(record, "error") for record in read_topic(bootstrap, DEAD_LETTERS))
        times = Counter(message["id"] for message in delivered)
        values = {
            "messages_sent": sum(1 for _ in read_topic(bootstrap, MESSAGES)),
            "delivered": len(delivered),
            "delivered_twice": sum(count > 1 for count in times.values()),
            "refused": dict(refused),
            "lost": sum(sorts.values()) - len(times) - refused.total(),
            "out_of_order": out_of_order(delivered),
            **{name: self._figures[name] for name in ("latency_ms", "connections", "most_connected", "active_people")},
            "messages_a_minute": self._figures["messages_a_minute"],
            "prometheus_agrees": self._prometheus()["my_connect_delivered_total"] == len(delivered),
        }
        if self._run.options.spark:
            values |= self._spark(sum(sorts.values()) - sorts.get("malformed", 0))
        self._run.report(values, "My Connect")
        wrong = values["delivered_twice"] or values["lost"] or values["out_of_order"]
        expected = Counter(sorts) == refused + Counter(delivered=len(delivered))
        return 0 if expected and not wrong and values["prometheus_agrees"] else 1

    def _spark(self, messages: int) -> dict[str, Any]:
        """What the pipelines have counted, once they have counted all messages."""
        deadline = time.monotonic() + SETTLED_SECONDS
        while True:
            windows = last_values(self._run.bootstrap, USAGE_SPARK)
            if sum(window["messages"] for window in windows.values()) == messages:
                break
            if time.monotonic() > deadline:
                raise ExampleError(f"Spark has not counted all {messages} messages; see {self._run.out}/pipelines.log")
            time.sleep(0.2)
        degrees = {name: row["connections"] for name, row in last_values(self._run.bootstrap, DEGREES_SPARK).items()}
        ordered = sorted(degrees.items(), key=lambda item: -item[1])
        return {
            "messages_counted_by_spark": sum(window["messages"] for window in windows.values()),
            "ten_second_windows": len(windows),
            "connections_counted_by_spark": sum(degrees.values()) // 2,
            "most_connected_by_spark": dict(ordered[:3]),
        }

    def _prometheus(self) -> dict[str, float]:
        with urllib.request.urlopen(self._metrics, timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def _stop(child: Child) -> None:
    if child.is_running():
        child.stop()


def last_values(bootstrap: str, topic: str) -> dict[str, dict[str, Any]]:
    """Key -> the last value written for it."""
    return {text(record.key()): json.loads(record.value() or b"") for record in read_topic(bootstrap, topic)}


def out_of_order(delivered: list[dict[str, Any]]) -> int:
    """Messages of one person to another that stand in the inbox before an older one."""
    last: dict[tuple[str, str], float] = {}
    wrong = 0
    for message in delivered:
        ends = (message["from"], message["to"])
        wrong += message["sent_at"] < last.get(ends, 0.0)
        last[ends] = message["sent_at"]
    return wrong


def table(figures: dict[str, Any]) -> Table:
    found = Table(title="My Connect", title_justify="left", show_header=False, box=None)
    for name, value in figures.items():
        text = ", ".join(f"{key} {item:,}" for key, item in value.items()) if isinstance(value, dict) else f"{value:,}"
        found.add_row(name.replace("_", " "), text)
    return found


def line(figures: dict[str, Any]) -> str:
    return (
        f"{figures['sent']:,} sent, {figures['delivered']:,} delivered, {sum(figures['refused'].values())} refused, "
        f"{figures['active_people']} people active, p99 {figures['latency_ms']['p99']:.0f} ms, "
        f"lag of the delivery {figures['lag']['my-connect-delivery']:,}"
    )
