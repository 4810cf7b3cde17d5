"""A `java` that is a shell script: for what an engine says when the real one is missing, old, or fails.

It answers `-version`, and for everything else runs the given lines of shell, with the arguments in `"$@"`.
"""

from pathlib import Path

import pytest


def fake_java(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str = "exit 0", version: str = "17.0.15") -> Path:
    """Puts it first on the PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    java = folder / "java"
    java.write_text(
        f'#!/bin/sh\nif [ "$1" = -version ]; then echo \'openjdk version "{version}" 2025\' >&2; exit 0; fi\n{script}\n'
    )
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return java
