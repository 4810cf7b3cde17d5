"""A page as it was crawled -> an article: title and plain text, without menus, advertisements and markup."""

from __future__ import annotations

import hashlib
import re
from html.parser import HTMLParser
from typing import Any

SHORTEST = 20
"""Words. What is shorter is no article."""
SKIPPED = {"script", "style", "nav", "aside", "footer"}
Article = dict[str, Any]
"""`url`, `site`, `title`, `text`, `words` and `fingerprint` (of the words alone: the same for exact copies)."""


class BrokenPageError(Exception):
    """Not to be made an article of; says why."""


def clean(url: str, page: bytes) -> Article:
    """The article on a page; BrokenPageError if there is none."""
    if not page.strip():
        raise BrokenPageError("empty")
    try:
        text = page.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BrokenPageError(f"not UTF-8: {error.reason} at byte {error.start}") from None
    title, body = _from_html(text) if url.endswith(".html") else _from_text(text)
    if not title:
        raise BrokenPageError("no title")
    found = words(body)
    if len(found) < SHORTEST:
        raise BrokenPageError(f"too short: {len(found)} words")
    fingerprint = hashlib.sha256(" ".join(found).encode()).hexdigest()
    return {
        "url": url,
        "site": url.partition("/")[0],
        "title": title,
        "text": body,
        "words": len(found),
        "fingerprint": fingerprint,
    }


def clean_row(row: dict[str, Any]) -> Article:
    """The same for Spark: a record of `articles-raw`, key and value, as a row."""
    return clean(row["key"], bytes(row["value"] or b""))


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def _from_text(text: str) -> tuple[str, str]:
    """`Name: value` lines, an empty line, and the text."""
    head, _, body = text.partition("\n\n")
    title = re.search(r"^Title: *(.*)$", head, re.MULTILINE)
    return title[1].strip() if title else "", _one_line(body)


def _from_html(text: str) -> tuple[str, str]:
    page = _Page()
    page.feed(text)
    page.close()
    if page.articles != page.ends:
        raise BrokenPageError("cut off: the article has no end")
    return _one_line("".join(page.title)), _one_line("".join(page.text))


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


class _Page(HTMLParser):
    """Collects the text and the first heading inside <article>."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self.text: list[str] = []
        self.articles = self.ends = 0
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in {*SKIPPED, "article", "h1"}:
            self._inside.append(tag)
            self.articles += tag == "article"
        self.text.append(" " if tag == "p" else "")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            self._inside.remove(tag)
            self.ends += tag == "article"

    def handle_data(self, data: str) -> None:
        if "article" not in self._inside or SKIPPED.intersection(self._inside):
            return
        (self.title if "h1" in self._inside else self.text).append(data)
