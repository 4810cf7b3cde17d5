"""Where on this machine a user's data belong, by the customs of the system."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path


def data_home(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder that holds the data of all of a user's programs."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return Path(environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
