"""Example word-count: its counts after a restart, beside plain Python's."""

import itertools
import json
import re
import sqlite3
from collections import Counter
from contextlib import closing
from typing import Any

import pytest

from example_kit.reading import read_topic, text
from word_count.example import FOLDER

LINES = 300


@pytest.mark.timeout(300)  # starting Spark takes its time
@pytest.mark.usefixtures("spark_jars")
def test_the_counts_go_on_after_a_restart(example: Any, log: str) -> None:
    report = example("word-count", "--bootstrap", log, "--seconds", "3", "--rate", str(LINES // 3))
    lines = itertools.islice(itertools.cycle((FOLDER / "text.txt").read_text().splitlines()), LINES)
    right = Counter(word for line in lines for word in re.findall("[a-z']+", line.lower()))
    with closing(sqlite3.connect(example.out / "words.db")) as connection:
        assert dict(connection.execute("SELECT word, times FROM word_counts")) == right
    told = [json.loads(text(record.value())) for record in read_topic(log, "word-counts")]
    assert {count["word"]: count["times"] for count in told} == right
    assert (report["lines"], report["words"]) == (LINES, right.total())
    assert (report["wrong_in_table"], report["wrong_in_topic"], report["counts_that_did_not_grow"]) == (0, 0, 0)
    assert "nobody has counted these lines yet" in example.said
