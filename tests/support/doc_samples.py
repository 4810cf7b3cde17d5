"""The samples in the pages about pipelines, for the tests that read and run them.

A fenced block of YAML that begins with `pipeline:` is a sample. A block whose fence has a file's name after the
language (a line of backticks, then `csv ranges.csv`) is a file that lies beside the samples: those of its own page,
and those of others that have none of that name.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
_FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)


class Sample(NamedTuple):
    """A pipeline in a page: the page, the line at which it begins, and its text."""

    page: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs" / "pipelines").rglob("*.md"))]


def pipeline_samples() -> list[Sample]:
    """All pipelines in YAML."""
    return [
        Sample(page, line, text)
        for page in pages()
        for language, _, line, text in _blocks(page)
        if language == "yaml" and re.match(r"(#.*\n|---\n|\s)*pipeline:", text)
    ]


def python_samples() -> list[Sample]:
    """All Python that makes pipelines."""
    return [
        Sample(page, line, text)
        for page in pages()
        for language, _, line, text in _blocks(page)
        if language == "python" and "from millstream.pipelines import" in text
    ]


def files_beside(page: Path) -> dict[str, str]:
    """The files that a page's samples may need, by name."""
    return {name: text for other in (*pages(), page) for _, name, _, text in _blocks(other) if name}


class AnyEnvironment(Mapping[str, str]):
    """An environment in which every variable is set, to its name in small letters."""

    def __getitem__(self, name: str) -> str:
        return name.lower()

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _blocks(page: Path) -> Iterator[tuple[str, str, int, str]]:
    text = page.read_text()
    for match in _FENCE.finditer(text):
        yield match[1], match[2] or "", text.count("\n", 0, match.start(3)) + 1, match[3]
