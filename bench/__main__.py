"""`python -m bench`: runs the benchmark and writes its results; see bench/README.md."""

from __future__ import annotations

import argparse
import fnmatch
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench import charts, report
from bench.compare import Series, compare
from bench.growth import grow
from bench.limit import PlainLoop
from bench.peers import PEERS
from bench.report import ONE, OTHER, Results
from bench.rows import FULL, QUICK, ROWS, TINY, RawRequests, Row, Scale
from bench.spark_rows import SPARK_ROWS
from bench.systems import ApacheKafka, Millstream, System
from millstream import __version__
from millstream.engines.jars import KAFKA_VERSION

ALL_ROWS: tuple[Row, ...] = (*ROWS, *SPARK_ROWS)
ROOT = Path(__file__).parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    if given.redraw:
        _write(report.load(given.redraw), given.redraw.parent, given.page)
        return 0
    rows = [row for row in ALL_ROWS if not given.rows or any(fnmatch.fnmatch(row.name, word) for word in given.rows)]
    if not rows:
        print("no row has such a name; there are:", *(f"  {row.name}" for row in ALL_ROWS), sep="\n", file=sys.stderr)
        return 2
    scale: Scale = TINY if given.tiny else QUICK if given.quick else FULL
    if given.rounds:
        scale = scale._replace(rounds=given.rounds)
    begin = time.monotonic()
    results = run(rows, scale, peers=not given.no_peers, growth=not given.no_growth)
    _write(results, given.out, given.page)
    met, count = results.goals
    print(f"{met} of {count} goals are met; {(time.monotonic() - begin) / 60:.1f} minutes; results in {given.out}")
    return 0


def run(rows: Sequence[Row], scale: Scale, *, peers: bool = True, growth: bool = True) -> Results:
    """Everything is started here and stopped here; the data goes with it."""
    folder = Path(tempfile.mkdtemp(prefix="millstream-bench-"))
    missing: dict[str, str] = {}
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        two: list[System] = [Millstream(folder / "millstream"), ApacheKafka(folder / "apache-kafka")]
        versions = {ONE: __version__, OTHER: KAFKA_VERSION}
        for system in two:
            stack.callback(system.kill)
            _say(f"starting {system.name}")
            system.start()
        outcome = compare(rows, two, {ONE, OTHER}, scale, _say)
        report.check(outcome, (ONE, OTHER), scale.rounds)
        curves = grow(two, scale, _say) if growth else {}
        for system in two:
            system.stop()
        if peers:
            _add_peers(rows, folder, scale, outcome.series, outcome.failures, missing, versions)
    return Results(
        report.today(), report.commit(), report.machine(), scale.rounds, versions, outcome.series, outcome.failures,
        missing, curves,
    )  # fmt: skip


def _add_peers(
    rows: Sequence[Row],
    folder: Path,
    scale: Scale,
    series: list[Series],
    failures: dict[str, dict[str, str]],
    missing: dict[str, str],
    versions: dict[str, str],
) -> None:
    """One after the other, and after the two, whose figures they must not disturb."""
    known = {(line.row, line.figure): line for line in series}
    others: tuple[type[System], ...] = (*PEERS, PlainLoop)
    for peer in others:
        reason = peer.is_available()
        if reason is not None:
            missing[peer.name] = reason
            continue
        system = peer(folder / peer.__name__.lower())
        _say(f"starting {system.name}")
        try:
            system.start()
        except (OSError, RuntimeError) as error:
            system.kill()
            missing[peer.name] = str(error)
            continue
        try:
            asked = [row for row in rows if row.for_peers and (system.speaks_kafka or isinstance(row, RawRequests))]
            found = compare(asked, [system], set(), scale._replace(rounds=min(3, scale.rounds)), _say)
        finally:
            system.kill()
        versions[system.name] = peer.version
        for line in found.series:
            known[line.row, line.figure].values.update(line.values)
        for row, why in found.failures.items():
            failures.setdefault(row, {}).update(why)


def _write(results: Results, out: Path, page: Path | None) -> None:
    out.mkdir(parents=True, exist_ok=True)
    report.save(results, out / "results.json")
    title = f"{ONE} beside {OTHER} {results.versions[OTHER]}, {results.date}, commit {results.commit}"
    charts.draw_ratios(results.series, ONE, OTHER, title, out / "performance.png")
    if results.growth:
        colors = {ONE: Millstream.color, OTHER: ApacheKafka.color}
        charts.draw_growth(results.growth, colors, title, out / "performance-growth.png")
    report.write_page(results, out / "performance.md")
    if page is not None:
        images = page.parent / "images"
        images.mkdir(exist_ok=True)
        for picture in out.glob("performance*.png"):
            shutil.copy(picture, images)
        report.write_page(results, page)


def _say(line: str) -> None:
    print(line, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Millstream beside Apache Kafka.")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="in 3 minutes: less of everything")
    size.add_argument("--tiny", action="store_true", help="only to see that it runs: the figures mean nothing")
    parser.add_argument("--rows", nargs="+", metavar="PATTERN", help="only rows with such names, like 'consume*'")
    parser.add_argument("--rounds", type=int, help="rounds of each row")
    parser.add_argument("--no-peers", action="store_true", help="only the two")
    parser.add_argument("--no-growth", action="store_true", help="without the curves")
    parser.add_argument("--out", type=Path, default=ROOT / "bench-results", help="folder of the results")
    parser.add_argument("--page", type=Path, help="write the page of the docs there, with its pictures")
    parser.add_argument(
        "--redraw", type=Path, metavar="JSON", help="only write charts and page anew from these results"
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
