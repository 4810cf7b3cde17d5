#!/usr/bin/env python3
"""Runs the clicks example at several rates and writes what came out, and where, to `examples/clicks/NUMBERS.md`.

    python scripts/clicks_numbers.py [--seconds 15] [--engine kafka]

It takes about two minutes. Other work on the machine spoils the numbers; so the load at the beginning is written down.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

RATES = (1_000, 10_000, 25_000, 50_000)
PAGE = Path(__file__).parent.parent / "examples" / "clicks" / "NUMBERS.md"
ENGINES = {"embedded": "Millstream's own log", "kafka": "Apache Kafka"}


def measure(engine: str, seconds: float, rate: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="millstream-numbers-") as out:
        options = ["--engine", engine, "--seconds", str(seconds), "--rate", str(rate), "--out", out, "--json"]
        command = [sys.executable, "-m", "millstream", "example", "run", "clicks", "--", *options]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def machine() -> str:
    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB, {platform.system()}, "
        f"Python {platform.python_version()}; load at the beginning {load:.1f}"
    )


def page(engine: str, seconds: float, where: str, reports: dict[int, dict[str, Any]]) -> str:
    lines = [
        "# Measured",
        "",
        f"Written by `scripts/clicks_numbers.py` on {date.today():%Y-%m-%d}: `millstream example run clicks`, each for",
        f"{seconds:g} s, on {ENGINES[engine]}, with embedded stores; log, generator and four members on one machine:",
        f"{where}.",
        "",
        "| asked for | made a second | group | saved a second | p50 | p99 | missing |",
        "|---:|---:|---|---:|---:|---:|---:|",
    ]
    for rate, report in reports.items():
        for group in ("kc-clicks-persistor", "kc-clicks-mysql"):
            found = report[group]
            lines.append(
                f"| {rate:,} | {report['made_a_second']:,} | {group} ({found['store']}) | {found['saved_a_second']:,} "
                f"| {found['p50_ms']:,} ms | {found['p99_ms']:,} ms | {found['missing']} |"
            )
    return "\n".join([*lines, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--engine", choices=list(ENGINES), default="embedded")
    options = parser.parse_args()
    where = machine()
    reports = {rate: measure(options.engine, options.seconds, rate) for rate in RATES}
    PAGE.write_text(page(options.engine, options.seconds, where, reports))
    print(f"{PAGE} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
