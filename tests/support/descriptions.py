"""Pipelines as files, for tests of how they are read."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from millstream.pipelines import Pipeline, PipelineErrors, read


def written(folder: Path, text: str, name: str = "p.yaml") -> Path:
    """A file with this text."""
    path = folder / name
    path.write_text(dedent(text))
    return path


def read_text(
    folder: Path, text: str, environ: Mapping[str, str] | None = None, name: str = "p.yaml"
) -> list[Pipeline]:
    return read(written(folder, text, name), environ or {})


def mistakes(folder: Path, text: str, environ: Mapping[str, str] | None = None, name: str = "p.yaml") -> list[str]:
    """What is wrong with a file, each as `LINE: FIELD: MESSAGE`, without the file's path."""
    with pytest.raises(PipelineErrors) as caught:
        read_text(folder, text, environ, name)
    return [str(error).removeprefix(f"{folder / name}:") for error in caught.value.errors]
