"""The benchmark runs, on both servers, and its results hold together. What the numbers are is not a test's business."""

from pathlib import Path

import pytest

from bench import report
from bench.__main__ import ALL_ROWS, main, run
from bench.compare import Series, compare, in_words
from bench.limit import PlainLoop
from bench.raw import produce_frame, push
from bench.report import ONE, OTHER
from bench.rows import CPU, ROWS, TINY, Measured, Restart, Row
from bench.systems import Millstream, System

ONE_OF_EACH_KIND = tuple({type(row): row for row in ROWS if not isinstance(row, Restart)}.values())
"""But a restart after kill -9, for which Apache Kafka waits until the session of its past life is over."""


@pytest.mark.timeout(600)
def test_every_kind_of_row_runs_on_both(tmp_path: Path) -> None:
    results = run(ONE_OF_EACH_KIND, TINY)
    assert {line.row for line in results.series} == {row.name for row in ONE_OF_EACH_KIND}
    for line in results.series:
        assert set(line.values) == {ONE, OTHER}
        assert all(len(values) == TINY.rounds for values in line.values.values())
        if line.figure != CPU:  # less than a tick of the clock may be none
            assert all(value > 0 for values in line.values.values() for value in values), line
    assert set(results.growth) == {"partitions", "connections"}
    assert all(point.requests_per_second > 0 for curve in results.growth.values() for point in curve[ONE])

    report.save(results, tmp_path / "results.json")
    assert report.load(tmp_path / "results.json") == results
    assert main(["--redraw", str(tmp_path / "results.json"), "--page", str(tmp_path / "docs.md")]) == 0
    page = (tmp_path / "docs.md").read_text()
    for row in ONE_OF_EACH_KIND:
        assert f"| {row.name} |" in page
    for picture in ("performance.png", "performance-growth.png"):
        assert (tmp_path / "images" / picture).stat().st_size > 10_000


def test_names_of_rows_are_different() -> None:
    names = [row.name for row in ALL_ROWS]
    assert len(set(names)) == len(names)


def test_a_pattern_without_a_row_lists_the_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--rows", "nothing*"]) == 2
    assert "produce 1 kB, acks=1" in capsys.readouterr().err


class _Broken(Row):
    """A row that nobody can do."""

    def measure(self, system: System, scale: object, prepared: object) -> Measured:
        raise RuntimeError("not today")


def test_a_peer_that_cannot_is_a_sentence_and_one_of_the_two_that_cannot_is_an_error(tmp_path: Path) -> None:
    system = PlainLoop(tmp_path)
    system.start()
    try:
        found = compare([_Broken("broken")], [system], set(), TINY, lambda _: None)
        assert found.failures == {"broken": {"plain loop": "not today"}}
        assert found.series == []
        with pytest.raises(RuntimeError, match="not today"):
            compare([_Broken("broken")], [system], {"plain loop"}, TINY, lambda _: None)
    finally:
        system.kill()


def test_ratios_are_of_the_rounds_and_goals_know_what_is_better() -> None:
    faster = Series("row", "throughput", "records/s", "higher", 1.0, {ONE: [20, 30, 40], OTHER: [10, 10, 50]})
    assert faster.ratios(ONE, OTHER) == [2.0, 3.0, 0.8]
    assert faster.ratio(ONE, OTHER) == 2.0
    assert faster.is_met(ONE, OTHER) is True
    assert faster._replace(better="lower").is_met(ONE, OTHER) is False
    assert faster._replace(goal=None).is_met(ONE, OTHER) is None


def test_what_is_printed_has_the_ratio_of_two_with_its_spread() -> None:
    two = Series("row", "throughput", "records/s", "higher", 1.0, {ONE: [20, 30, 40], OTHER: [10, 10, 50]})
    assert in_words(two) == "throughput (records/s): Millstream 30   Apache Kafka 10   ratio 2.00 (0.80-3.00)"
    assert in_words(two._replace(values={"kfake": [1.5]})) == "throughput (records/s): kfake 1.5"


def test_the_plain_loop_counts_frames_however_they_are_cut(tmp_path: Path) -> None:
    system = PlainLoop(tmp_path)
    system.start()
    try:
        frame = produce_frame("topic", size=1000, records=100)
        assert push(system.bootstrap, [frame], connections=3, requests=50, depth=4) > 0
        written = (tmp_path / "bytes").stat().st_size
        assert written == 50 * len(frame)
    finally:
        system.kill()


def test_what_a_server_costs_is_read_from_its_process(tmp_path: Path) -> None:
    system = Millstream(tmp_path)
    system.start()
    try:
        assert 0 < system.cpu_seconds() < 60
        with system.watched() as spent:
            push(system.bootstrap, [produce_frame("topic", size=1000, records=1)], connections=1, requests=1, depth=1)
            resident = system.memory()
        assert 0 <= spent.cpu_seconds < 60
        assert 10_000_000 < resident <= spent.peak_memory
    finally:
        system.stop()
