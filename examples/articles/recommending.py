"""Which articles a reader of one may like: those that use the same rare words (tf-idf, cosine)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from articles.cleaning import words

MOST = 3
LEAST = 0.03
SHORTEST_TERM = 3
ENDING = re.compile(r"(?<=...)(ies|es|s|ing|ed|ers|er)$")
COMMON = frozenset((Path(__file__).parent / "common_words.txt").read_text().split())
"""Words that say little of what a text is about."""
Recommendations = dict[str, list[dict[str, Any]]]
"""URL -> the articles that go with it, best first: `url`, `title`, `score`."""


def recommend(articles: Mapping[str, Mapping[str, Any]]) -> Recommendations:
    """For every article; `articles` is URL -> article."""
    counts = {url: Counter(terms(f"{article['title']} {article['text']}")) for url, article in articles.items()}
    in_articles = Counter(word for count in counts.values() for word in count)
    vectors = {url: _unit(count, in_articles, len(articles)) for url, count in counts.items()}
    return {
        url: [
            {"url": other, "title": articles[other]["title"], "score": round(score, 4)}
            for score, other in sorted(
                ((_dot(vector, vectors[other]), other) for other in vectors if other != url),
                key=lambda o: (-o[0], o[1]),
            )[:MOST]
            if score >= LEAST
        ]
        for url, vector in vectors.items()
    }


def terms(text: str) -> list[str]:
    """The words that tell, without their endings."""
    told = [ENDING.sub("", word) for word in words(text) if word not in COMMON]
    return [term for term in told if len(term) >= SHORTEST_TERM]


def _unit(count: Counter[str], in_articles: Counter[str], articles: int) -> dict[str, float]:
    vector = {word: times * math.log(articles / in_articles[word]) for word, times in count.items()}
    length = math.sqrt(sum(weight * weight for weight in vector.values())) or 1.0
    return {word: weight / length for word, weight in vector.items()}


def _dot(one: dict[str, float], other: dict[str, float]) -> float:
    return sum(weight * other.get(word, 0.0) for word, weight in one.items())
