"""Which engine a data folder belongs to: the marker file `engine` at its root says so.

A folder without a marker that has Kafka's `meta.properties` at its root was made by `millstream serve`, and is the
embedded engine's. The two engines lay out their folders differently, so one never opens the other's.
"""

from __future__ import annotations

from pathlib import Path

from millstream.engines.errors import EngineError

MARKER = "engine"


def owner(data: Path) -> str | None:
    """The engine whose data lie there; None for a folder that is new, empty or somebody else's."""
    try:
        return (data / MARKER).read_text().strip()
    except OSError:
        return "embedded" if (data / "meta.properties").exists() else None


def claim(data: Path, engine: str) -> None:
    """Makes the folder the engine's own; EngineError if it is the other one's, or no place to write."""
    found = owner(data)
    if found is not None and found != engine:
        raise EngineError(
            f"{data} holds the data of the {found} engine, not of the {engine} engine: start it with --engine {found}, "
            f"or give another folder with --data (`millstream graduate` moves the data of a running embedded engine)"
        )
    try:
        data.mkdir(parents=True, exist_ok=True)
        (data / MARKER).write_text(f"{engine}\n")
    except OSError as error:
        raise EngineError(f"{data} cannot be the data folder: {error.strerror}") from error
