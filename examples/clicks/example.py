"""Clicks on advertisements, saved by two consumer groups in two stores: the tour of what groups do

The generator makes one click for each of 10 campaigns and 5 publishers, 50 at a tick, a tick every millisecond, to
topic `clicks`. Group kc-clicks-persistor saves them in Parquet files (Cassandra with --real), group kc-clicks-mysql in
SQLite (MariaDB with --real). Both save first and commit after, so nothing is lost; their stores take nothing twice.

Without a word the whole of it runs at full rate and ends with a report. With a word it is an experiment, at 10,000
clicks a second (with real stores everything runs at 5,000) unless told otherwise:
  new-group       a group goes live that has never read anything
  member-down     a member is killed; the others take over; it is replaced
  fast-and-slow   one group is fast, the other slow, and then gets more members
  store-away      both stores are away for a while
  spark           the same flow as Spark pipelines
"""

from __future__ import annotations

import argparse
from typing import Any

from clicks.check import count, dead_letters, tell_letters
from clicks.experiments import EXPERIMENTS, JOIN_SECONDS, Settings, experiment
from clicks.group import percentile
from clicks.stage import MYSQL, PERSISTOR, Stage, stage
from clicks.stores import title_of
from example_kit import ExampleError, options_parser, running

RATE = 50_000
EXPERIMENT_RATE = 10_000
REAL_RATE = 5_000
"""Less, so that the groups could do more than they have to, as in life."""


def main(argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    with running(options) as run, stage(run) as play:
        report = _play(play, options)
        run.report(report, "Clicks" if options.what is None else f"Clicks: {options.what}")
    return 0 if _nothing_wrong(report) else 1


def _play(play: Stage, options: argparse.Namespace) -> dict[str, Any]:
    """What was asked for; the report."""
    if options.what is None:
        return demo(play, options)
    rate = options.rate or (REAL_RATE if options.real else EXPERIMENT_RATE)
    settings = Settings(options.seconds, rate, options.malformed_every, options.away, options.seed)
    if options.what == "spark":
        from clicks.spark import spark  # needs more than the others

        return spark(play, settings)
    return experiment(options.what, play, settings)


def _nothing_wrong(report: dict[str, Any]) -> bool:
    """Whether no store misses a click, has one twice, or has it wrong."""
    stores = [part for part in report.values() if isinstance(part, dict)]
    return not any(store.get(name) for store in stores for name in ("missing", "doubled", "different", "wrong"))


def _parser() -> argparse.ArgumentParser:
    parser = options_parser("clicks", __doc__, seconds=20, rate=RATE, of="clicks", real=True)
    parser.set_defaults(rate=None)
    parser.add_argument("what", nargs="?", choices=[*EXPERIMENTS, "spark"], metavar="EXPERIMENT", help="see above")
    parser.add_argument("--members", type=int, default=2, metavar="N", help="of each group (default: 2)")
    parser.add_argument(
        "--malformed-every", type=int, default=10_000, metavar="N", help="a click of so many is none; 0: never (10,000)"
    )
    parser.add_argument("--away", type=float, default=10, metavar="N", help="store-away: seconds (default: 10)")
    parser.add_argument("--seed", type=int, metavar="N", help="the same visitors and uuids every time")
    return parser


def demo(play: Stage, options: argparse.Namespace) -> dict[str, Any]:
    """Generator and both groups at full rate; the report."""
    rate = options.rate or (REAL_RATE if options.real else RATE)
    for name in (PERSISTOR, MYSQL):
        group = play.start_group(name, options.members)
        play.run.say(f"{name} starts with {options.members} members, which save in {title_of(group.store)}")
    if not play.play(lambda: all(map(play.settled, play.groups)), JOIN_SECONDS):
        raise ExampleError(f"the groups have not got their partitions within {JOIN_SECONDS:.0f} s")
    play.start_generator(options.seconds, rate, options.malformed_every, options.seed)
    play.play(lambda: play.generator_started, JOIN_SECONDS)
    play.event(f"the generator makes {rate:,.0f} clicks a second for {options.seconds:g} s", "the generator starts")
    play.play(lambda: play.generator_done, options.seconds + JOIN_SECONDS)
    began = play.clock()
    play.event(
        f"the generator has made {play.made:,} clicks; the groups read what is left", "the generator has stopped"
    )
    play.play_out()
    play.event(f"all is saved and committed, {play.clock() - began:.1f} s later", "all is saved and committed")
    play.stop()
    plot = play.draw(f"Clicks: {play.made:,} in {play.made_seconds:.0f} s to two groups", "clicks.png")
    return _report(play, str(plot))


def _report(play: Stage, plot: str) -> dict[str, Any]:
    letters = dead_letters(play.run.bootstrap)
    tell_letters(play.run, letters)
    report: dict[str, Any] = {"clicks_made": play.made, "made_a_second": round(play.made / play.made_seconds)}
    for group in play.groups.values():
        bad, saved = len(letters[group.name]), count(group.store)
        report[group.name] = {
            "store": title_of(group.store),
            "saved": saved,
            "saved_a_second": round(saved / group.seconds),
            "p50_ms": percentile(group.latencies, 0.5),
            "p99_ms": percentile(group.latencies, 0.99),
            "dead_letters": bad,
            "missing": play.made - bad - saved,
        }
    report["plot"] = plot
    return report
