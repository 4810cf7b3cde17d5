"""The stage `unique` on Spark: what it remembers is Spark's state, which is kept with the pipeline's checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from articles.similarity import Copies


class NearDuplicates(StatefulProcessor):
    """Adds to each article of which other one it is a copy (`of`), how much (`alike`) and `how`; or nulls."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._kept = handle.getMapState("kept", "url string", "fingerprint string, text string")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 (Spark's)
        copies = Copies()
        for (url,), (fingerprint, text) in self._kept.iterator():
            copies.remember(url, fingerprint, text)
        for row in rows:
            found = copies.of(row["url"], row["fingerprint"], row["text"])
            if found is None:
                copies.remember(row["url"], row["fingerprint"], row["text"])
                self._kept.updateValue((row["url"],), (row["fingerprint"], row["text"]))
            columns = ("url", "site", "title", "text", "words", "fingerprint")
            why = found or {"of": None, "alike": None, "how": None}
            yield Row(**{name: row[name] for name in columns}, **why)

    def close(self) -> None:
        pass
