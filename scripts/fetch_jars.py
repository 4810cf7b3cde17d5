#!/usr/bin/env python3
"""Fetches the jars of all Java programs that the tests and examples start into the repository's cache, once.

Used by `make setup`. The sets are declared where they are used; all the work is done by `millstream.jvm.maven`.

    fetch_jars.py [--cache DIR]

Exit status 0: the jars are there; 1: they are not, and the reason was printed.
"""

import argparse
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from millstream.engines.jars import KAFKA
from millstream.jvm import maven
from millstream.jvm.errors import JvmError
from millstream.jvm.maven import JarSet
from millstream.jvm.progress import Step
from millstream.pipelines.jars import SPARK
from millstream.stores.cassandra import CASSANDRA
from millstream.stores.hdfs import HDFS

JAR_SETS = (KAFKA, SPARK, CASSANDRA, HDFS)


def default_cache() -> Path:
    """The cache folder: `MILLSTREAM_CACHE`, or `.cache` at the root of the repository."""
    return Path(os.environ.get(maven.CACHE_VARIABLE) or Path(__file__).resolve().parent.parent / ".cache")


def show(step: Step) -> None:
    if step.done is None:
        print(step.text, flush=True)
    elif step.done % 10 == 0 or step.done == step.total:
        print(f"{step.text}: {step.done} of {step.total} jars", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, default=default_cache(), help="where the jars go (default: %(default)s)")
    cache: Path = parser.parse_args().cache
    missing = [jar_set for jar_set in JAR_SETS if not maven.is_complete(jar_set, cache)]
    with ThreadPoolExecutor(max_workers=len(JAR_SETS)) as pool:  # the registry answers each of them slowly, not all
        return max(pool.map(lambda jar_set: fetch(jar_set, cache), missing), default=0)


def fetch(jar_set: JarSet, cache: Path) -> int:
    """The exit status of one of them."""
    started = time.monotonic()
    try:
        folder = maven.fetch(jar_set, cache, show)
    except JvmError as failure:
        print(f"fetch_jars: {failure}", file=sys.stderr)
        return 1
    jars = list(folder.glob("*.jar"))
    size = sum(jar.stat().st_size for jar in jars) / 1e6
    print(f"{jar_set.title}: {len(jars)} jars, {size:.0f} MB, {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
