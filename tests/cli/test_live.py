"""What is shown of a running platform, with an engine whose processes come and go."""

from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.cli import live
from millstream.cli.signals import Stop
from millstream.cluster.connection import Connection
from millstream.cluster.status import BrokerStatus, GroupStatus, PartitionStatus, Status
from millstream.engines.engine import Process
from millstream.jvm.progress import Progress, Step, silent
from millstream.testing import running_server


class ScriptedStop(Stop):
    """Does the next thing whenever it is waited for; the word to stop comes after the last."""

    def __init__(self, *actions: Callable[[], None]) -> None:
        self._actions = list(actions)
        self.is_set = False

    def wait(self, seconds: float) -> bool:
        if self._actions:
            self._actions.pop(0)()
        else:
            self.is_set = True
        return self.is_set


class TwoBrokers:
    """An engine on somebody else's cluster, with two processes."""

    name = "kafka"

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.pids: list[int | None] = [11, 12]

    def start(self, progress: Progress = silent) -> None: ...

    def stop(self) -> None: ...

    def processes(self) -> list[Process]:
        return [Process("broker", 1 + at, "broker", None, pid, Path("log")) for at, pid in enumerate(self.pids)]

    def health(self) -> list[str]:
        return [f"broker {process.node_id} is down" for process in self.processes() if process.pid is None]

    def set(self, *pids: int | None) -> Callable[[], None]:
        def action() -> None:
            self.pids = list(pids)

        return action


def nothing() -> None: ...


def test_lines_say_when_a_broker_goes_and_comes(capsys: pytest.CaptureFixture[str]) -> None:
    with running_server() as server:
        engine = TwoBrokers(server.bootstrap_servers)
        stop = ScriptedStop(nothing, engine.set(None, 12), nothing, engine.set(11, 12))
        live.run(engine, Connection(server.bootstrap_servers), stop)
    lines = capsys.readouterr().out.splitlines()
    status = "brokers 1/1, controller 1, topics 0, partitions 0, under-replicated 0, offline 0"
    assert lines[0] == f"listening on {engine.bootstrap}"
    assert [line.partition(", in ")[0].partition(", groups")[0] for line in lines[1:]] == [
        status, "broker 1 is down", status, "all processes run again", status,
    ]  # fmt: skip
    assert stop.is_set


def test_it_ends_when_no_process_is_left() -> None:
    with running_server() as server:
        engine = TwoBrokers(server.bootstrap_servers)
        stop = ScriptedStop(nothing, engine.set(None, None))
        live.run(engine, Connection(server.bootstrap_servers), stop)
    assert not stop.is_set


def test_a_cluster_that_does_not_answer_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    live.run(TwoBrokers("127.0.0.1:1"), Connection("127.0.0.1:1"), ScriptedStop(nothing))
    assert "the cluster does not answer: no broker answers at 127.0.0.1:1" in capsys.readouterr().out


def test_steps_are_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with live.starting() as show:
        for step in (Step("fetching", 1, 3), Step("fetching", 2, 3), Step("waiting", 0, 2), Step("waiting", 2, 2)):
            show(step)
    assert capsys.readouterr().err == "fetching\nwaiting\n"


def test_partitions_in_trouble_are_shown_own_topics_last_and_the_rest_counted() -> None:
    from rich.console import Console

    offline = PartitionStatus("orders", 7, None, (1, 2), ())
    under = [PartitionStatus("__consumer_offsets", n, 2, (1, 2), (2,)) for n in range(20)]
    brokers = [BrokerStatus(1, "a:1", False, False, 0, 22), BrokerStatus(2, "b:1", True, True, 21, 22)]
    groups = [GroupStatus("known", "Stable", 1234), GroupStatus("unknown", "Empty", None)]
    mine = PartitionStatus("orders", 3, 2, (1, 2), (2,))
    status = Status("id", 2, brokers, 1, 1, 8, [*under, mine, offline], [offline], groups, 10.0, 5.0, ["a note"])
    console = Console(width=100)
    with console.capture() as drawn:
        console.print(live.picture_of(status))
    lines = [line.split() for line in drawn.get().splitlines() if line.strip()]
    assert ["under-replicated", "22"] in lines
    assert ["offline", "1"] in lines
    assert ["1", "a:1", "down", "0", "22"] in lines
    assert ["2", "b:1", "up", "controller", "21", "22"] in lines
    first = lines.index(["partition", "leader", "replicas", "in", "sync"]) + 1
    assert lines[first] == ["orders-7", "none", "1,2", "none"]
    assert lines[first + 1] == ["orders-3", "2", "1,2", "2"]
    assert ["and", "10", "more"] in lines
    assert ["known", "Stable", "1,234"] in lines
    assert ["unknown", "Empty", "?"] in lines
    assert ["a", "note"] in lines
    assert "offline 1, in 10/s out 5/s, groups 2 lag 1234" in live.line_of(status)
