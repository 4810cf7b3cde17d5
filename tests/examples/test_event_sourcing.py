"""Event sourcing: the bank's rules, the store's two ways back, and the whole bank with handlers killed."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from event_sourcing import handler
from event_sourcing.accounts import Account, Command, Decision, MalformedError, checked, decide
from event_sourcing.client import Bank, NoAnswerError
from event_sourcing.example import ACCOUNTS, main
from event_sourcing.questions import broken_rules, events, lowest_balances, money_on_the_way, turnover
from event_sourcing.store import (
    DEAD_LETTERS,
    EVENTS,
    PARTITIONS,
    POSITION_KEY,
    SNAPSHOTS,
    TOPICS,
    Shard,
    from_scratch,
    from_snapshot,
)
from example_kit import create_topic
from example_kit.background import in_background
from example_kit.reading import read_topic
from millstream.testing import TestServer

AMOUNTS = st.integers(1, 100)
NAMES = st.sampled_from(["a", "b", "nobody"])
COMMANDS = st.one_of(
    st.fixed_dictionaries({"kind": st.sampled_from(["deposit", "withdraw"]), "account": NAMES, "cents": AMOUNTS}),
    st.fixed_dictionaries({"kind": st.just("transfer"), "account": NAMES, "to": NAMES, "cents": AMOUNTS}),
)


class SmallBank:
    """The rules, with a list for a log."""

    def __init__(self) -> None:
        self.shard = Shard()
        self.events: list[dict[str, Any]] = []
        for name in ("a", "b"):
            self.command({"id": f"open-{name}", "kind": "open", "account": name})

    def command(self, command: Command) -> Decision:
        """Carries out the command and all that follows from it."""
        decision = decide(self.shard.accounts.get(command["account"]), checked(command))
        if decision.event is not None:
            self.events.append(decision.event)
            self.shard.apply(decision.event)
        for further in decision.commands:
            self.command(further)
        return decision


# --- the rules ---


@given(st.lists(COMMANDS, max_size=40))
def test_money_is_neither_made_nor_lost(commands: list[Command]) -> None:
    bank = SmallBank()
    for number, command in enumerate(commands):
        bank.command({"id": str(number), **command})
    totals: Counter[str] = Counter()
    for event in bank.events:
        totals[event["kind"]] += event["cents"]
    balances = [account.balance for account in bank.shard.accounts.values()]
    assert sum(balances) == totals["deposited"] - totals["withdrawn"]
    assert min(balances) >= 0
    assert totals["sent"] == totals["received"] + totals["returned"]


def test_a_command_that_comes_again_is_carried_out_once() -> None:
    bank = SmallBank()
    for _ in range(3):
        answer = bank.command({"id": "same", "kind": "deposit", "account": "a", "cents": 5}).answer
    assert answer == {"accepted": True, "version": 2, "balance": 5, "again": True}


def test_a_command_for_another_version_is_refused() -> None:
    bank = SmallBank()
    deposit = {"kind": "deposit", "account": "a", "cents": 5, "expected_version": 1}
    assert bank.command({"id": "1", **deposit}).answer["accepted"]
    assert bank.command({"id": "2", **deposit}).answer == {
        "accepted": False, "reason": "conflict", "version": 2, "balance": 5,
    }  # fmt: skip


def test_money_sent_to_nobody_comes_back() -> None:
    bank = SmallBank()
    bank.command({"id": "1", "kind": "deposit", "account": "a", "cents": 5})
    bank.command({"id": "2", "kind": "transfer", "account": "a", "to": "nobody", "cents": 5})
    assert [event["kind"] for event in bank.events[-2:]] == ["sent", "returned"]
    assert bank.shard.accounts["a"].balance == 5


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ([], "JSON object"),
        ({"kind": "open", "account": "a"}, "id is missing"),
        ({"id": "1", "kind": "steal", "account": "a"}, "'steal' is none of open"),
        ({"id": "1", "kind": "deposit", "account": "a", "cents": -1}, "above 0"),
        ({"id": "1", "kind": "deposit", "account": "a", "cents": 1.5}, "above 0"),
        ({"id": "1", "kind": "transfer", "account": "a", "cents": 1}, "needs `to`"),
    ],
)
def test_what_is_no_command_is_said(command: Any, said: str) -> None:
    with pytest.raises(MalformedError, match=said):
        checked(command)


# --- the store ---


def test_a_missing_event_is_noticed() -> None:
    event = {"account": "a", "version": 2, "kind": "deposited", "cents": 1, "command": "1"}
    with pytest.raises(ValueError, match="event 2 after version 0"):
        Shard().apply(event)


def test_snapshots_tell_only_what_changed() -> None:
    bank = SmallBank()
    assert [key for key, _ in bank.shard.snapshot()] == [b"a", b"b", POSITION_KEY]
    bank.command({"id": "1", "kind": "deposit", "account": "b", "cents": 5})
    key, value = bank.shard.snapshot()[0]
    assert (key, json.loads(value)["balance"]) == (b"b", 5)


# --- on a server ---


@contextmanager
def handling(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A handler on a thread."""
    monkeypatch.setattr(handler, "tell", lambda **event: None)
    for name, (partitions, config) in TOPICS.items():
        create_topic(bootstrap, name, partitions=partitions, config=config)
    working = handler.Handler(bootstrap, "handler")
    with in_background(lambda stop: working.worker.run(working.work, stop)):
        yield


def test_request_and_reply(millstream: TestServer, monkeypatch: pytest.MonkeyPatch) -> None:
    bootstrap = millstream.bootstrap_servers
    with handling(bootstrap, monkeypatch), Bank(bootstrap) as bank:
        assert bank.ask("balance", "a") == {"accepted": False, "reason": "no such account"}
        assert bank.ask("open", "a")["accepted"]
        asked = [bank.send("deposit", "a", cents=cents) for cents in (1, 2, 3)]
        assert [future.result(20)["balance"] for future in asked] == [1, 3, 6]
    with Bank(bootstrap) as bank, pytest.raises(NoAnswerError, match=r"no answer to balance within 0.2 s"):
        bank.ask("balance", "a", timeout=0.2)
    with handling(bootstrap, monkeypatch), Bank(bootstrap) as bank:
        assert bank.ask("balance", "a")["balance"] == 6


def test_bad_commands_are_set_aside_and_work_goes_on(millstream: TestServer, monkeypatch: pytest.MonkeyPatch) -> None:
    bootstrap = millstream.bootstrap_servers
    with handling(bootstrap, monkeypatch), Bank(bootstrap) as bank:
        bank.send_raw("a", b"\xff")
        bank.send_raw("b", json.dumps({"id": "1", "kind": "open", "account": "a"}).encode())
        producer = Producer({"bootstrap.servers": bootstrap})
        headers: dict[str, str | bytes | None] = {"reply-to": "some-other-topic", "correlation-id": "1"}
        opening = json.dumps({"id": "1", "kind": "open", "account": "a"})
        producer.produce("bank-commands", key="a", value=opening, headers=headers)
        producer.flush()
        assert bank.ask("open", "a")["accepted"]
        bank.ask("open", "b")
    errors = [str(dict(record.headers() or [])["error"]) for record in read_topic(bootstrap, DEAD_LETTERS)]
    assert len(errors) == 3
    for part in ("not JSON", "the key is not the account", "answers go to bank-replies"):
        assert any(part in error for error in errors), part


def test_the_bank(millstream: TestServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bootstrap = millstream.bootstrap_servers
    assert main([f"--bootstrap={bootstrap}", "--seconds=3", f"--out={tmp_path}", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["handlers_killed"] == 3
    assert report["accounts"] == len(ACCOUNTS)
    assert report["accounts_that_differ"] == report["broken_rules"] == 0
    assert report["conflicts_of_two_tellers"] == 1
    assert report["malformed_commands_set_aside"] == 3
    assert report["commands"]["sent"] == sum(report["commands"].values()) / 2 > 500
    assert 0 < report["events_read"]["after_snapshots"] < report["events_read"]["from_scratch"]

    happened = list(events(bootstrap))
    assert len(happened) == report["events_read"]["from_scratch"]
    assert [event["command"] for event in happened].count("the-same") == 1
    shards = [from_scratch(bootstrap, number) for number in range(PARTITIONS)]
    assert [shard.accounts for shard in shards] == [
        from_snapshot(bootstrap, number).accounts for number in range(PARTITIONS)
    ]
    totals = turnover(bootstrap)
    balances = sum(account.balance for shard in shards for account in shard.accounts.values())
    assert balances == totals["deposited"] - totals["withdrawn"]
    assert money_on_the_way(bootstrap) == 0
    assert set(lowest_balances(bootstrap)) == set(ACCOUNTS)
    assert {(record.key() or b"").decode() for record in read_topic(bootstrap, SNAPSHOTS)} <= {*ACCOUNTS, "@position"}

    # the log outlives the processes: a second day at the same bank
    assert main([f"--bootstrap={bootstrap}", "--seconds=1", f"--out={tmp_path}", "--json"]) == 0
    second = json.loads(capsys.readouterr().out)
    assert second["commands"]["the account exists"] == len(ACCOUNTS)
    assert second["events_read"]["from_scratch"] > report["events_read"]["from_scratch"]


def test_broken_rules_are_found(millstream: TestServer) -> None:
    bootstrap = millstream.bootstrap_servers
    create_topic(bootstrap, EVENTS)
    assert broken_rules(bootstrap) == []
    producer = Producer({"bootstrap.servers": bootstrap})
    account = Account("a").after({"version": 1, "kind": "opened", "cents": 0, "command": "1"})
    assert account.balance == 0
    for version, kind, command in ((1, "opened", "1"), (3, "withdrawn", "2"), (4, "received", "2")):
        event = {"account": "a", "version": version, "kind": kind, "cents": 5, "command": command}
        producer.produce(EVENTS, key="a", value=json.dumps(event))
    producer.flush()
    assert broken_rules(bootstrap) == [
        "a: version 3 after 1",
        "a: balance -5",
        "command 2 was carried out 2 times",
        "5 cents arrived that nobody sent",
    ]
