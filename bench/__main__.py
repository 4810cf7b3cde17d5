"""`python -m bench`: runs the benchmark and writes its results; see bench/README.md."""

from __future__ import annotations

import argparse
import fnmatch
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import charts, report
from bench.compare import compare
from bench.growth import grow
from bench.limit import PlainLoop
from bench.peers import PEERS
from bench.report import ONE, OTHER, Results
from bench.rows import FULL, QUICK, ROWS, TAKE_LONG, TINY, RawRequests, Row, Scale
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
        scale = scale._replace(rounds=given.rounds, row_seconds=0)
    if given.quick and not given.rows:
        rows = [row for row in rows if not any(fnmatch.fnmatch(row.name, word) for word in TAKE_LONG)]
    begin = time.monotonic()
    results = run(rows, scale, growth=not (given.no_growth or given.quick))
    _write(results, given.out, given.page)
    if not (given.no_peers or given.quick):
        results = with_peers(results, rows, scale)
        _write(results, given.out, given.page)
    met, count = results.goals
    print(f"{met} of {count} goals are met; {(time.monotonic() - begin) / 60:.1f} minutes; results in {given.out}")
    return 0


def run(rows: Sequence[Row], scale: Scale, *, growth: bool = True) -> Results:
    """The two. Everything is started here and stopped here; the data goes with it."""
    with _folder() as folder, ExitStack() as stack:
        two: list[System] = [Millstream(folder / "millstream"), ApacheKafka(folder / "apache-kafka")]
        for system in two:
            stack.callback(system.stop)
            _say(f"starting {system.name}")
            system.start()
        outcome = compare(rows, two, {ONE, OTHER}, scale, _say)
        report.check(outcome, (ONE, OTHER), scale.rounds)
        curves = grow(two, scale, _say) if growth else {}
    versions = {ONE: __version__, OTHER: KAFKA_VERSION}
    return Results(
        report.today(), report.commit(), report.machine(), scale.rounds, versions, outcome.series, outcome.failures,
        {}, curves,
    )  # fmt: skip


def with_peers(results: Results, rows: Sequence[Row], scale: Scale) -> Results:
    """The same with the others beside them: one after the other, and after the two, whom they must not disturb."""
    known = {(line.row, line.figure): line for line in results.series}
    failures = {row: dict(systems) for row, systems in results.failures.items()}
    versions, missing = dict(results.versions), dict(results.missing)
    others: tuple[type[System], ...] = (*PEERS, PlainLoop)
    for peer in others:
        reason = peer.is_available()
        if reason is not None:
            missing[peer.name] = reason
            continue
        with _folder() as folder:
            system = peer(folder)
            _say(f"starting {system.name}")
            try:
                system.start()
                asked = [row for row in rows if row.for_peers and (system.speaks_kafka or isinstance(row, RawRequests))]
                fewer = scale._replace(share=scale.share / 2, rounds=min(2, scale.rounds), row_seconds=0)
                found = compare(asked, [system], set(), fewer, _say)
            except (OSError, RuntimeError) as error:
                missing[peer.name] = str(error)
                continue
            finally:
                system.kill()
        versions[system.name] = peer.version
        for line in found.series:
            known[line.row, line.figure].values.update(line.values)
        for row, why in found.failures.items():
            failures.setdefault(row, {}).update(why)
    return results._replace(series=list(known.values()), failures=failures, versions=versions, missing=missing)


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="millstream-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
    size.add_argument("--quick", action="store_true", help="in 3 minutes: less of everything, and only the two")
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
