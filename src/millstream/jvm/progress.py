"""How something that takes a while tells what it does: steps to a callback. The caller shows them, or does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Step(NamedTuple):
    """What is being done; `done` of `total` where that can be counted."""

    text: str
    done: int | None = None
    total: int | None = None


Progress = Callable[[Step], None]


def silent(step: Step) -> None:
    """The progress callback of somebody who does not want to know."""
