"""Requests from fraudulent addresses, found in an access log within milliseconds, with Spark

A producer replays a web server's access log, with random addresses, to topic `accesslog`. Two pipelines read it
(pipelines/fraud-ips.yaml). The first keeps every request, and asks a look-up whether its address is in a fraud range;
such requests go to a partitioned table and, at once, to topic `fraudip`. The second counts requests and frauds in
windows of six hours of the server's time, for SQL to ask.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

from example_kit import Run, create_topic, options_parser, running
from example_kit.catching_up import wait_until, wait_until_read
from example_kit.clients import quiet
from example_kit.pace import paced
from example_kit.pipelines import Pipelines, running_pipelines
from example_kit.sending import Sender
from fraud_ips import replay
from fraud_ips.alerts import TOPIC as FRAUD
from fraud_ips.alerts import Alerts
from fraud_ips.check import expected, rows_in, rows_in_topic, windows_in
from fraud_ips.stores import store

TOPIC = "accesslog"
PARTITIONS = 2
FOLDER = Path(__file__).parent / "pipelines"


def main(argv: list[str]) -> int:
    parser = options_parser("fraud-ips", __doc__, seconds=10, rate=100, of="lines")
    parser.add_argument(
        "--lookup",
        choices=("file", "memory", "sql", "redis"),
        default="file",
        help="who knows the fraud ranges (default: file)",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="the same addresses every time")
    options = parser.parse_args(argv)
    with running(options) as run, store(options.lookup, run) as address:
        create_topic(run.bootstrap, TOPIC, partitions=PARTITIONS, fresh=True)
        create_topic(run.bootstrap, FRAUD, fresh=True)
        results = run.out / "results"
        shutil.rmtree(results, ignore_errors=True)
        results.mkdir()
        file = FOLDER / ("fraud-ips.yaml" if options.lookup == "file" else "other_lookup.py")
        environment = {"FRAUD_OUT": str(results), "FRAUD_LOOKUP": options.lookup, "FRAUD_STORE": address}
        run.say("starting Spark, which takes a while")
        sent: dict[str, float] = {}
        with running_pipelines(run, [file], environment) as pipelines, Alerts(run, sent) as alerts:
            mode = _mode(run, pipelines)
            _replay(run, sent)
            run.say("the log is replayed; the pipelines do what is left")
            wait_until_read(pipelines, run.bootstrap, {"fraud-ips": [TOPIC], "fraud-windows": [TOPIC]})
            fraud = rows_in_topic(run.bootstrap).total()
            wait_until(pipelines, lambda: len(alerts.milliseconds) >= fraud, "not all alerts have come")
            run.say("all is done; Spark stops")
        run.report({"lookup": options.lookup, "mode": mode, **_results(run, results, alerts)}, "Fraud IPs")
    return 0


def _mode(run: Run, pipelines: Pipelines) -> str:
    """How the topic of frauds gets its records: by a query of its own, or by the one that all sinks share."""
    queries = pipelines.status["fraud-ips"]["queries"]
    for query in queries:
        run.say(f"query {query['name']} runs in {query['mode']} mode: {query['why']}")
    modes: dict[str, str] = {query["name"]: query["mode"] for query in queries}
    return modes.get(f"topic-{FRAUD}", modes["main"])


def _replay(run: Run, sent: dict[str, float]) -> None:
    """The log to the topic; when each address was sent, for the alerts."""
    options = run.options
    run.say(f"replaying {options.rate:,.0f} lines a second for {options.seconds:g} s")
    sender = Sender({**quiet(run.bootstrap), "linger.ms": 0})
    for _, (ip, line) in zip(paced(options.seconds, options.rate), replay.lines(options.seed), strict=False):
        sent[ip] = time.time()
        sender.send(TOPIC, line)
    sender.finish()


def _results(run: Run, results: Path, alerts: Alerts) -> dict[str, Any]:
    """Everything that came out, compared with what should have."""
    run.say("comparing what came out with the log, line by line")
    right = expected(run.bootstrap, TOPIC)
    kept, table, topic = rows_in(results / "requests"), rows_in(results / "fraud"), rows_in_topic(run.bootstrap)
    windows = windows_in(results / "windows.db")
    late = sorted(alerts.milliseconds)
    report: dict[str, Any] = {
        "requests": right.requests.total(),
        "malformed": right.malformed,
        "kept": kept.total(),
        "fraud": right.fraud.total(),
        "fraud_in_table": table.total(),
        "fraud_in_topic": topic.total(),
        "wrong": sum(
            (wanted - found).total() + (found - wanted).total()
            for wanted, found in ((right.requests, kept), (right.fraud, table), (right.fraud, topic))
        ),
        "share_of_fraud_percent": round(100 * right.fraud.total() / right.requests.total(), 1),
        "alerts": {
            "raised": len(late),
            "p50_ms": round(late[len(late) // 2], 1),
            "p99_ms": round(late[len(late) * 99 // 100], 1),
        },
    }
    wanted = [right.windows[window] for window in sorted(right.windows)]
    report["windows_wrong"] = sum(
        counts != (requests, fraud) for counts, (_, requests, fraud, _) in zip(wanted, windows, strict=True)
    )
    report["windows"] = {begin: f"{fraud} of {requests}: {share} %" for begin, requests, fraud, share in windows}
    return report
