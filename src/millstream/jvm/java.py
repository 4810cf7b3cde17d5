"""The Java that runs our Java programs: found in JAVA_HOME or on the PATH, and new enough for all of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from millstream.jvm.errors import JvmError

MINIMUM = 17
HELP = (
    f"install Java {MINIMUM} or newer (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; "
    "macOS: brew install openjdk@17) or set JAVA_HOME"
)


def find_java(needed_by: str, environ: Mapping[str, str] = os.environ) -> str:
    """The path of a `java` that will do; JvmError says what to install, and what needs it ("Apache Kafka")."""
    java = None
    if environ.get("JAVA_HOME"):
        java = shutil.which(str(Path(environ["JAVA_HOME"]) / "bin" / "java"))
    java = java or shutil.which("java", path=environ.get("PATH", os.defpath))
    if java is None:
        raise JvmError(f"{needed_by} needs Java, and there is no `java` on the PATH: {HELP}")
    version = java_version(java)
    if version < MINIMUM:
        raise JvmError(f"{java} is Java {version}, and {needed_by} needs {MINIMUM} or newer: {HELP}")
    return java


def java_version(java: str) -> int:
    """The major version: 17 for `17.0.15`, 8 for `1.8.0_392`."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JvmError(f"{java} does not run ({error}): {HELP}") from error
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if match is None:
        raise JvmError(f"`{java} -version` does not say which Java it is: {HELP}")
    return int(match[1])
