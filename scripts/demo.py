#!/usr/bin/env python3
"""`make demo`: starts the platform with `millstream up` and shows the log at work, by the commands a person would type.

Each command is printed before it runs. The platform listens on a free port, keeps its data in a temporary folder and is
stopped at the end; nothing of the user's is touched.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

MILLSTREAM = [sys.executable, "-m", "millstream"]
CLICKS = "".join(
    f'{campaign}:{{"campaignId": {campaign}, "pubId": {publisher}, "country": "{country}"}}\n'
    for campaign in range(1, 11)
    for publisher, country in enumerate(("SE", "DE", "FR", "IN", "US"), 1)
)


class Demo:
    """Runs commands in an environment of its own."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self._environment = {**os.environ, "MILLSTREAM_CONFIG": str(folder / "contexts.toml"), "COLUMNS": "110"}
        self._environment.pop("MILLSTREAM_BOOTSTRAP", None)
        self._environment.pop("MILLSTREAM_CONTEXT", None)

    def run(self, *arguments: str, piped: str = "", comment: str = "") -> None:
        if comment:
            print(f"\n# {comment}")
        source = "generate-clicks | " if piped else ""
        print(f"$ {source}millstream {shlex.join(arguments)}", flush=True)
        subprocess.run([*MILLSTREAM, *arguments], input=piped or None, text=True, check=True, env=self._environment)


def main() -> int:
    print("Millstream: a log that every Kafka client already speaks")
    with tempfile.TemporaryDirectory(prefix="millstream-demo-") as folder:
        demo = Demo(Path(folder))
        try:
            demo.run("up", "--detach", "--port", "0", "--data", str(demo.data), comment="the platform, on a free port")
            demo.run("topic", "create", "clicks", "--partitions", "3", comment="a topic")
            demo.run(
                *("topic", "produce", "clicks", "--key-separator", ":", "--compression", "zstd"),
                piped=CLICKS,
                comment="one click for each campaign and publisher, a record a line",
            )
            demo.run("topic", "consume", "clicks", "--group", "kc-clicks-persistor", "--count", "5")
            demo.run(
                *("topic", "consume", "clicks", "--filter", 'value.country == "SE"', "--format", "{key} {value}\n"),
                comment="only the Swedish ones",
            )
            demo.run("group", "describe", "kc-clicks-persistor", comment="where the group stands, and its lag")
            demo.run("group", "seek", "kc-clicks-persistor", "--topic", "clicks", "--to", "latest", "--execute")
            demo.run("topic", "list", comment="what there is now")
            demo.run(
                *("bench", "produce", "--records", "200000", "--size", "100"),
                comment="how fast it is on this machine",
            )
            demo.run("status")
        finally:
            demo.run("down", "--data", str(demo.data), comment="and stop")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
