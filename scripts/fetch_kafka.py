#!/usr/bin/env python3
"""Fetches Apache Kafka's jars (broker, tools and Java clients) into the repository's cache, once.

Used by `make setup`; the tests start Apache Kafka and its tools from these jars. All the work is done by
`millstream.engines.jars`.

    fetch_kafka.py [--cache DIR]

Exit status 0: the jars are there; 1: they are not, and the reason was printed.
"""

import argparse
import os
import sys
import time
from pathlib import Path

from millstream.engines import jars
from millstream.engines.engine import Step
from millstream.engines.errors import EngineError


def default_cache() -> Path:
    """The cache folder: `MILLSTREAM_CACHE`, or `.cache` at the root of the repository."""
    return Path(os.environ.get(jars.CACHE_VARIABLE) or Path(__file__).resolve().parent.parent / ".cache")


def show(step: Step) -> None:
    if step.done is None:
        print(f"  {step.text}", flush=True)
    elif step.done % 10 == 0 or step.done == step.total:
        print(f"  {step.done:3d} of {step.total} jars", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, default=default_cache(), help="where the jars go (default: %(default)s)")
    cache: Path = parser.parse_args().cache
    if jars.is_complete(cache):
        return 0
    started = time.monotonic()
    try:
        folder = jars.fetch(cache, show)
    except EngineError as failure:
        print(f"fetch_kafka: {failure}", file=sys.stderr)
        return 1
    print(f"  {len(list(folder.glob('*.jar')))} jars in {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
