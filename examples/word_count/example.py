"""Words of a stream counted as they come, with counts that survive a restart

Lines of a text go to topic `lines`. A pipeline (pipelines/word-count.yaml) counts their words: every new count goes to
topic `word-counts`, and replaces the old one in a SQLite table. In the middle the pipeline is stopped; the lines go on;
started again, it counts on from where it was.
"""

from __future__ import annotations

import itertools
import json
import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

from example_kit import Run, create_topic, options_parser, running
from example_kit.catching_up import wait_until_read
from example_kit.clients import quiet
from example_kit.pace import paced
from example_kit.pipelines import running_pipelines
from example_kit.reading import read_topic, text
from example_kit.sending import Sender

TOPIC = "lines"
COUNTS = "word-counts"
FOLDER = Path(__file__).parent
PIPELINE = FOLDER / "pipelines" / "word-count.yaml"
SHOWN = 8


def main(argv: list[str]) -> int:
    options = options_parser("word-count", __doc__, seconds=6, rate=100, of="lines").parse_args(argv)
    with running(options) as run:
        create_topic(run.bootstrap, TOPIC, partitions=2, fresh=True)
        create_topic(run.bootstrap, COUNTS, config={"cleanup.policy": "compact"}, fresh=True)
        database = run.out / "words.db"
        database.unlink(missing_ok=True)
        lines = itertools.cycle((FOLDER / "text.txt").read_text().splitlines())
        for part in ("first", "second"):
            run.say(f"starting Spark for the {part} time, which takes a while")
            with running_pipelines(
                run, [PIPELINE], {"WORD_COUNTS": f"sqlite:///{database}"}, fresh=part == "first"
            ) as pipelines:
                write(run, lines, options.seconds / 3)
                wait_until_read(pipelines, run.bootstrap, {"word-count": [TOPIC]})
                say_counts(run, database)
            if part == "first":
                write(run, lines, options.seconds / 3)
                run.say("the pipeline was stopped, and nobody has counted these lines yet")
        report(run, database)
    return 0


def write(run: Run, lines: itertools.cycle[str], seconds: float) -> None:
    """Lines to the topic, at the rate, for so long."""
    sender = Sender(quiet(run.bootstrap))
    for _ in paced(seconds, run.options.rate):
        sender.send(TOPIC, next(lines))
    run.say(f"{sender.finish():,} more lines are written")


def counted(database: Path) -> Counter[str]:
    """The counts in the table."""
    with closing(sqlite3.connect(database)) as connection:
        return Counter(dict(connection.execute("SELECT word, times FROM word_counts")))


def say_counts(run: Run, database: Path) -> None:
    words = counted(database)
    top = ", ".join(f"{word} {times:,}" for word, times in words.most_common(SHOWN))
    run.say(f"{words.total():,} words counted so far: {top}, ...")


def report(run: Run, database: Path) -> None:
    """What was counted, beside what plain Python counts in the whole topic."""
    lines = [text(record.value()) for record in read_topic(run.bootstrap, TOPIC)]
    right = Counter(word for line in lines for word in re.findall("[a-z']+", line.lower()))
    told, falls = Counter[str](), 0
    for record in read_topic(run.bootstrap, COUNTS):
        count = json.loads(text(record.value()))
        falls += count["times"] <= told[count["word"]]
        told[count["word"]] = count["times"]
    table = counted(database)
    run.report(
        {
            "lines": len(lines),
            "words": right.total(),
            "different_words": len(right),
            "wrong_in_table": sum(table[word] != right[word] for word in {*table, *right}),
            "wrong_in_topic": sum(told[word] != right[word] for word in {*told, *right}),
            "counts_that_did_not_grow": falls,
            "most_frequent": dict(right.most_common(SHOWN)),
        },
        "Word count",
    )
