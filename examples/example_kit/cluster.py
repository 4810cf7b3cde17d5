"""A cluster for as long as an example runs, started with `millstream up` as a person would.

It has a free port and a temporary folder, and is not recorded as this machine's platform: commands typed meanwhile go
where they always go, unless they name its address with `--bootstrap`. It ends with the example, however that ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from example_kit.errors import ExampleError
from example_kit.processes import guarded

READY = "listening on "
STOP_SECONDS = 60.0


@contextmanager
def started_cluster(engine: str = "embedded") -> Iterator[str]:
    """The address of a fresh cluster. `engine`: `embedded`, or `kafka` for Apache Kafka from its jars."""
    with tempfile.TemporaryDirectory(prefix="millstream-example-", ignore_cleanup_errors=True) as folder:
        up = ["up", "--engine", engine, "--port", "0", "--data", str(Path(folder) / "data")]
        command = guarded([sys.executable, "-m", "millstream", *up])
        environment = {**os.environ, "XDG_STATE_HOME": str(Path(folder) / "state")}
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the example, which then stops this in order
        )
        assert process.stdin is not None
        assert process.stdout is not None
        reader = threading.Thread(target=process.stdout.read, daemon=True)
        try:
            line = process.stdout.readline()
            if not line.startswith(READY):
                raise ExampleError(f"the {engine} engine did not start (it has said why)")
            reader.start()  # so that it never has to wait for one
            yield line.removeprefix(READY).strip()
        finally:
            process.stdin.close()
            try:
                process.wait(STOP_SECONDS)
            finally:
                process.kill()
                process.wait()
                if reader.is_alive():
                    reader.join()
                process.stdout.close()
