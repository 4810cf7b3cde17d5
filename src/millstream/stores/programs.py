"""Finding installed programs: on the PATH, and where servers lie that are no commands for everyone."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from millstream.stores.errors import StoreError

SERVER_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin", "/opt/homebrew/sbin", "/usr/local/bin")


def find_program(
    title: str, names: tuple[str, ...], *, package: str, formula: str, folders: tuple[str, ...] = ()
) -> str:
    """The path of the first of `names` that is there. `folders` may be patterns: the highest version is taken.

    StoreError says what to install: Debian's package, and the formula on macOS.
    """
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *SERVER_FOLDERS, *_existing(folders)])
    for name in names:
        if found := shutil.which(name, path=path):
            return found
    raise StoreError(f"{title} is not installed: apt-get install {package} (macOS: brew install {formula})")


def _existing(patterns: tuple[str, ...]) -> list[str]:
    found = [folder for pattern in patterns for folder in Path("/").glob(pattern.lstrip("/"))]
    return [str(folder) for folder in sorted(found, key=_version, reverse=True)]


def _version(folder: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(folder))]
