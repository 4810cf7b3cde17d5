"""The three stages behind the crawler, each a process and a consumer group of its own.

A stage reads a topic, works, and writes the next one, exactly once (`example_kit.exactly_once`). What it must remember
is in the topics that it writes, so that a stage that was killed knows again what it knew.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Protocol

from confluent_kafka import Message

from articles.cleaning import Article, BrokenPageError, clean
from articles.recommending import Recommendations, recommend
from articles.similarity import Copies
from articles.topics import CLEAN, DEAD_LETTERS, DUPLICATES, RAW, RECOMMENDATIONS, UNIQUE
from example_kit import parent_says_stop
from example_kit.exactly_once import ExactlyOnce, Send
from example_kit.reading import read_topic, text


class Stage(Protocol):
    """What a stage does."""

    source: str

    def __init__(self, bootstrap: str) -> None: ...
    def restore(self, partitions: set[int]) -> None: ...
    def work(self, records: list[Message], send: Send) -> None: ...


class Clean:
    """Pages to articles; what is none goes to the dead letters, with the reason."""

    source = RAW

    def __init__(self, bootstrap: str) -> None:
        pass

    def restore(self, partitions: set[int]) -> None:
        """It remembers nothing."""

    def work(self, records: list[Message], send: Send) -> None:
        for record in records:
            url = text(record.key())
            try:
                article = clean(url, record.value() or b"")
            except BrokenPageError as error:
                _set_aside(record, "clean", str(error), send)
            else:
                send(CLEAN, key=url, value=json.dumps(article))


class Unique:
    """The first of several copies goes on, the others are set aside. It remembers what it let through."""

    source = CLEAN

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._copies = Copies()

    def restore(self, partitions: set[int]) -> None:
        self._copies = Copies()
        for record in read_topic(self._bootstrap, UNIQUE) if partitions else ():
            article = json.loads(record.value() or b"")
            self._copies.remember(article["url"], article["fingerprint"], article["text"])

    def work(self, records: list[Message], send: Send) -> None:
        for article in _articles(records, "unique", send):
            known = (article["url"], article["fingerprint"], article["text"])
            copy = self._copies.of(*known)
            if copy is None:
                self._copies.remember(*known)
                send(UNIQUE, key=article["url"], value=json.dumps(article))
            else:
                send(DUPLICATES, key=article["url"], value=json.dumps(copy))


class Recommend:
    """For each article those that go with it; only what has changed is written."""

    source = UNIQUE

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._articles: dict[str, Article] = {}
        self._written: Recommendations = {}

    def restore(self, partitions: set[int]) -> None:
        """Articles that come again take their own place, so it does no harm to know those ahead already."""
        self._articles, self._written = {}, {}
        if partitions:
            for record in read_topic(self._bootstrap, UNIQUE):
                self._articles[text(record.key())] = json.loads(record.value() or b"")
            for record in read_topic(self._bootstrap, RECOMMENDATIONS):
                self._written[text(record.key())] = json.loads(record.value() or b"[]")

    def work(self, records: list[Message], send: Send) -> None:
        for article in _articles(records, "recommend", send):
            self._articles[article["url"]] = article
        for url, found in recommend(self._articles).items():
            if self._written.get(url) != found:
                self._written[url] = found
                send(RECOMMENDATIONS, key=url, value=json.dumps(found))


STAGES: dict[str, type[Stage]] = {"clean": Clean, "unique": Unique, "recommend": Recommend}


def _articles(records: list[Message], stage: str, send: Send) -> Iterator[Article]:
    """The articles in the records; what is none goes to the dead letters."""
    for record in records:
        try:
            article = json.loads(record.value() or b"")
            if not all(isinstance(article[name], str) for name in ("url", "title", "text", "fingerprint")):
                raise TypeError
        except (ValueError, TypeError, KeyError):
            _set_aside(record, stage, "not an article as the stage before writes it", send)
        else:
            yield article


def _set_aside(record: Message, stage: str, error: str, send: Send) -> None:
    origin = f"{record.topic()}-{record.partition()}@{record.offset()}"
    headers = {"error": error, "stage": stage, "origin": origin}
    send(DEAD_LETTERS, key=record.key(), value=record.value(), headers=headers)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--stage", required=True, choices=STAGES)
    options = parser.parse_args()
    stop = parent_says_stop()
    stage: Stage = STAGES[options.stage](options.bootstrap)
    name = f"articles-{options.stage}"
    worker = ExactlyOnce(
        options.bootstrap, name=name, group=name, topics=[stage.source], restore=stage.restore, batch=5, wait=0.1
    )
    worker.run(stage.work, stop)


if __name__ == "__main__":
    main()
