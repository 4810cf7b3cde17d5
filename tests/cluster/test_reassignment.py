"""Waiting for a reassignment: told step by step, and given up when nothing moves any more."""

from typing import Any

import pytest

from millstream.cluster import reassignment
from millstream.cluster.connection import Connection
from millstream.cluster.errors import ClusterError
from millstream.cluster.layout import Layout, Partition
from millstream.cluster.placement import Move
from millstream.cluster.reassignment import Reassignment

MOVES = [Move("t", 0, (1,), (2,)), Move("t", 1, (1,), (3,))]


class Controller:
    """A cluster that moves one partition whenever it is looked at."""

    def __init__(self, *, stubborn: bool = False) -> None:
        self.placement: dict[tuple[str, int], tuple[int, ...]] = {("t", 0): (1,), ("t", 1): (1,)}
        self.pending: dict[tuple[str, int], tuple[int, ...]] = {}
        self.elected: list[Any] = []
        self.stubborn = stubborn

    def alter(self, connection: Connection, target: dict[tuple[str, int], tuple[int, ...]]) -> None:
        if not self.stubborn:
            self.pending = dict(target)

    def in_progress(self, connection: Connection) -> list[Reassignment]:
        return [Reassignment(topic, number, list(to), list(to), [1]) for (topic, number), to in self.pending.items()]

    def patiently(self, connection: Connection, action: Any) -> Layout:
        partitions = [Partition(*key, 1, held, held, False) for key, held in self.placement.items()]
        if self.pending:
            key, replicas = self.pending.popitem()
            self.placement[key] = replicas
        return Layout("id", 1, (), (), tuple(partitions))

    def hold(self, connection: Connection, keys: Any, *, unclean: bool) -> None:
        self.elected = sorted(keys)


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Controller:
    found = Controller(stubborn=getattr(request, "param", False))
    monkeypatch.setattr(reassignment, "_alter", found.alter)
    for name in ("in_progress", "patiently", "hold"):
        monkeypatch.setattr(reassignment, name, getattr(found, name))
    monkeypatch.setattr(reassignment, "POLL_SECONDS", 0)
    return found


def test_progress_is_told_until_all_are_there_and_led(controller: Controller) -> None:
    told: list[tuple[int, int]] = []
    reassignment.execute(Connection("x:1"), MOVES, lambda done, total: told.append((done, total)))
    assert told == [(0, 2), (1, 2), (2, 2)]
    assert controller.elected == [("t", 0), ("t", 1)]


def test_without_waiting_it_is_only_asked_for(controller: Controller) -> None:
    reassignment.execute(Connection("x:1"), MOVES, lambda done, total: pytest.fail("told"), wait=False)
    assert len(controller.pending) == 2


def test_nothing_to_do_asks_nobody(controller: Controller) -> None:
    reassignment.execute(Connection("x:1"), [], lambda done, total: pytest.fail("told"))
    assert controller.elected == []


@pytest.mark.parametrize("controller", [True], indirect=True)
def test_what_does_not_move_and_is_not_there_is_said(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reassignment, "SETTLE_SECONDS", -1)
    with pytest.raises(ClusterError, match=r"2 partitions have not got the replicas of the plan.*t-0, t-1"):
        reassignment.execute(Connection("x:1"), MOVES, lambda done, total: None)
