"""The chain of topics.

crawler -> articles-raw -> clean -> articles-clean -> unique -> articles-unique -> recommend -> recommendations
                             |                           |
                    articles-dead-letters       articles-duplicates
"""

from __future__ import annotations

RAW = "articles-raw"
CLEAN = "articles-clean"
UNIQUE = "articles-unique"
DUPLICATES = "articles-duplicates"
DEAD_LETTERS = "articles-dead-letters"
RECOMMENDATIONS = "recommendations"
TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    RAW: (3, {}),
    CLEAN: (1, {}),  # a copy can be of any article, so all of them pass one place
    UNIQUE: (1, {"cleanup.policy": "compact"}),
    DUPLICATES: (1, {}),
    DEAD_LETTERS: (1, {}),
    RECOMMENDATIONS: (1, {"cleanup.policy": "compact"}),
}
"""Name -> partitions and configs. The key is the URL everywhere."""
