"""Brings pages from a folder with a folder for each site to `articles-raw`, each version of a page once.

What has been brought is in the topic itself: the crawler reads that first. Pages are written in transactions, and a new
crawler shuts out an old one that still runs, so that two of them cannot bring the same page.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from pathlib import Path
from threading import Event

from confluent_kafka import Producer

from articles.topics import RAW
from example_kit import parent_says_stop, tell
from example_kit.clients import PARTITIONER, patient
from example_kit.exactly_once import commit
from example_kit.reading import read_topic

AT_ONCE = 4
SECONDS = 30.0


def crawl(bootstrap: str, folder: Path, rate: float, stop: Event) -> int:
    """Brings what is new in the folder, at most `rate` pages a second; how many that were."""
    producer = Producer({**patient(bootstrap), "transactional.id": "articles-crawler", "partitioner": PARTITIONER})
    producer.init_transactions(SECONDS)
    known = {(record.key(), dict(record.headers() or [])["sha256"]) for record in read_topic(bootstrap, RAW)}
    pages = [(file.relative_to(folder).as_posix(), file.read_bytes()) for file in sorted(folder.glob("*/*"))]
    new = [(url, page, _hash(page)) for url, page in pages if (url.encode(), _hash(page)) not in known]
    tell(known=len(known), new=len(new))
    for at in range(0, len(new), AT_ONCE):
        if stop.is_set():
            return at
        producer.begin_transaction()
        for url, page, sha in new[at : at + AT_ONCE]:
            producer.produce(RAW, key=url, value=page, headers={"sha256": sha})
        commit(producer)
        stop.wait(AT_ONCE / rate)
    return len(new)


def _hash(page: bytes) -> bytes:
    return hashlib.sha256(page).hexdigest().encode()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--rate", required=True, type=float)
    options = parser.parse_args()
    stop = parent_says_stop()
    begun = time.monotonic()
    brought = crawl(options.bootstrap, options.folder, options.rate, stop)
    tell(brought=brought, seconds=round(time.monotonic() - begun, 1))


if __name__ == "__main__":
    main()
