"""The Java that runs Apache Kafka: found in JAVA_HOME or on the PATH, and new enough."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from millstream.engines.errors import EngineError

MINIMUM = 17
HELP = (
    f"install Java {MINIMUM} or newer (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; "
    "macOS: brew install openjdk@17) or set JAVA_HOME"
)


def find_java(environ: Mapping[str, str] = os.environ) -> str:
    """The path of a `java` that will do; EngineError says what to install."""
    java = None
    if environ.get("JAVA_HOME"):
        java = shutil.which(str(Path(environ["JAVA_HOME"]) / "bin" / "java"))
    java = java or shutil.which("java", path=environ.get("PATH", os.defpath))
    if java is None:
        raise EngineError(f"Apache Kafka needs Java, and there is no `java` on the PATH: {HELP}")
    version = java_version(java)
    if version < MINIMUM:
        raise EngineError(f"{java} is Java {version}, and Apache Kafka needs {MINIMUM} or newer: {HELP}")
    return java


def java_version(java: str) -> int:
    """The major version: 17 for `17.0.15`, 8 for `1.8.0_392`."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError(f"{java} does not run ({error}): {HELP}") from error
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if match is None:
        raise EngineError(f"`{java} -version` does not say which Java it is: {HELP}")
    return int(match[1])
