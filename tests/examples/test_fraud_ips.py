"""Example fraud-ips: the replay, the look-ups, and all of it with every row compared."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from example_kit.reading import header, read_topic, text
from fraud_ips.check import expected
from fraud_ips.replay import LINE, SAMPLE, lines
from fraud_ips.stores import fraud_ranges
from millstream.pipelines import LookupStep, Pipeline, read

PIPELINES = SAMPLE.parent / "pipelines"
SIZE = len(SAMPLE.read_text().splitlines())


def test_the_replay_goes_on_a_day_later_and_keeps_what_is_no_line() -> None:
    days = [list(itertools.islice(replayed, SIZE)) for replayed in [lines(seed=1)] for _ in range(2)]
    matches = [[LINE.fullmatch(line) for _, line in day] for day in days]
    for match, (ip, line) in zip(matches[0], days[0], strict=True):
        assert (match["ip"] == ip) if match else line in SAMPLE.read_text()
    times = [[match["time"] for match in day if match] for day in matches]
    assert [time.replace("08/Mar", "09/Mar") for time in times[0]] == times[1]
    assert sum(match is None for match in matches[0]) == 2


def test_a_seed_gives_the_same_addresses_again() -> None:
    first, again, other = (list(itertools.islice(lines(seed), 50)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize(("kind", "store"), [("memory", ""), ("sql", "sqlite:////x.db"), ("redis", "redis://h:1/0")])
def test_another_lookup_changes_one_step_only(
    kind: str, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"FRAUD_OUT": str(tmp_path), "FRAUD_LOOKUP": kind, "FRAUD_STORE": store}.items():
        monkeypatch.setenv(name, value)
    for given, other in zip(read(PIPELINES / "fraud-ips.yaml"), read(PIPELINES / "other_lookup.py"), strict=True):
        assert _without_lookup(given) == _without_lookup(other)
        (step,) = (step for step in other.steps if isinstance(step, LookupStep))
        assert step.type == kind
        if kind == "memory":
            assert step.rows is not None
            assert step.rows.keys() == fraud_ranges()


@pytest.mark.timeout(300)  # starting Spark takes its time
@pytest.mark.usefixtures("spark_jars")
def test_every_request_is_kept_and_every_fraud_is_in_table_topic_and_windows(example: Any, log: str) -> None:
    report = example("fraud-ips", "--bootstrap", log, "--seconds", "3", "--rate", "200", "--seed", "7")
    assert report["requests"] + report["malformed"] == 600
    assert report["malformed"] == 2 * (600 // SIZE) + 1  # one of the third pass, which is half done
    assert report["kept"] == report["requests"]
    assert report["fraud_in_table"] == report["fraud_in_topic"] == report["fraud"] > 20
    assert (report["wrong"], report["windows_wrong"]) == (0, 0)
    assert report["mode"] == "real-time"
    assert report["alerts"]["raised"] == report["fraud"]
    assert "ALERT" in example.said
    assert {folder.name for folder in (example.out / "results" / "fraud").glob("date=*")} == {
        f"date=2004-03-{day:02}" for day in (8, 9, 10)
    }
    requests = sum(int(window.split()[2].rstrip(":")) for window in report["windows"].values())
    assert requests == report["requests"]
    letters = list(read_topic(log, "fraud-ips-dead-letters"))
    assert len(letters) == report["malformed"]
    assert {header(letter, "millstream.pipeline") for letter in letters} == {"fraud-ips"}
    assert all(LINE.fullmatch(text(letter.value())) is None for letter in letters)
    assert expected(log, "accesslog").fraud.total() == report["fraud"]


def _without_lookup(pipeline: Pipeline) -> dict[str, Any]:
    steps = [step for step in pipeline.steps if not isinstance(step, LookupStep)]
    return {
        **{name: getattr(pipeline, name) for name in ("name", "source", "sinks", "real_time_batch")},
        "steps": steps,
    }
