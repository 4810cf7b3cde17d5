"""A bank whose accounts are rebuilt from the log: commands, events, snapshots, request and reply

    bank-commands -> handlers (two processes) -> bank-events     what happened, for ever
                                              -> bank-snapshots  compacted: the accounts' last known states
                                              -> bank-replies    answers, by correlation id

Tellers deposit, withdraw and transfer while the handlers are killed with -9. At the end the accounts are rebuilt twice,
from all events and from the snapshots, and compared with what the handlers say.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager
from typing import Any

from event_sourcing.accounts import Account
from event_sourcing.client import Answer, Bank, NoAnswerError
from event_sourcing.questions import broken_rules, lowest_balances, money_on_the_way, turnover
from event_sourcing.store import DEAD_LETTERS, PARTITIONS, TOPICS, from_scratch, from_snapshot
from example_kit import Child, ExampleError, Run, create_topic, options_parser, running
from example_kit.reading import read_topic

ACCOUNTS = [f"account-{number}" for number in range(40)]
HANDLERS = ("handler-1", "handler-2")
SETTLED_SECONDS = 60.0
MALFORMED = [b"{not json", b'{"id": "x", "kind": "steal", "account": "account-1"}', b"[1, 2]"]


def main(argv: list[str]) -> int:
    options = options_parser("event-sourcing", __doc__, seconds=6, rate=300, of="commands").parse_args(argv)
    with running(options) as run, ExitStack() as stack:
        for name, (partitions, config) in TOPICS.items():
            create_topic(run.bootstrap, name, partitions=partitions, config=config)
        handlers = {name: stack.enter_context(handler(run, name)) for name in HANDLERS}
        bank = stack.enter_context(Bank(run.bootstrap))
        return Story(run, bank, handlers).tell()


class Supervised:
    """A handler process that can be killed and started again."""

    def __init__(self, run: Run, name: str) -> None:
        self._run = run
        self._name = name
        self.child = self._start()

    def _start(self) -> Child:
        arguments = ["--bootstrap", self._run.bootstrap, "--name", self._name]
        log = self._run.out / f"{self._name}.log"
        return Child("event_sourcing.handler", arguments, hear=self._hear, log=log)

    def _hear(self, event: dict[str, Any]) -> None:
        self._run.say(
            f"{self._name} rebuilt {event['accounts']} accounts of partitions {event['partitions']} "
            f"from {event['snapshots']:,} snapshots and {event['events']:,} events in {event['seconds'] * 1000:.0f} ms"
        )

    def kill(self) -> None:
        self.child.kill()
        self._run.say(f"{self._name} was killed with -9", "yellow")

    def restart(self) -> None:
        self.child = self._start()


@contextmanager
def handler(run: Run, name: str) -> Iterator[Supervised]:
    supervised = Supervised(run, name)
    try:
        yield supervised
    finally:
        if supervised.child.is_running():
            supervised.child.stop()


class Story:
    """What happens, in order."""

    def __init__(self, run: Run, bank: Bank, handlers: dict[str, Supervised]) -> None:
        self._run = run
        self._bank = bank
        self._handlers = handlers
        self._answers: list[Future[Answer]] = []
        self._kills = 0

    def tell(self) -> int:
        for account in ACCOUNTS:
            self._answers.append(self._bank.send("open", account))
            self._answers.append(self._bank.send("deposit", account, cents=100_000))
        self._settle()
        seconds = self._run.options.seconds
        self._work(seconds / 3)
        self._kill("handler-1")
        self._restart("handler-1")
        self._work(seconds / 3)
        self._ask_in_vain()
        self._work(seconds / 3)
        for value in MALFORMED:
            self._bank.send_raw("account-1", value)
        conflicts = self._two_tellers()
        self._settle()
        return self._report(conflicts)

    def _work(self, seconds: float) -> None:
        """The tellers' commands, at the rate asked for."""
        begun = time.monotonic()
        sent = 0
        while (passed := time.monotonic() - begun) < seconds:
            while sent < passed * self._run.options.rate:
                kind = random.choice(("deposit", "withdraw", "transfer", "transfer"))
                to = {"to": random.choice([*ACCOUNTS, "account-of-nobody"])} if kind == "transfer" else {}
                cents = random.randrange(1, 30_000)
                self._answers.append(self._bank.send(kind, random.choice(ACCOUNTS), cents=cents, **to))
                sent += 1
            time.sleep(0.01)
        self._bank.flush()

    def _kill(self, name: str) -> None:
        self._kills += 1
        self._handlers[name].kill()

    def _restart(self, name: str) -> None:
        self._handlers[name].restart()

    def _ask_in_vain(self) -> None:
        """With all handlers gone a question is not answered; asked again later, with the same command, it is."""
        for name in HANDLERS:
            self._kill(name)
        try:
            self._bank.ask("deposit", "account-1", timeout=0.5, command="the-same", cents=500)
            raise ExampleError("a dead handler answered")
        except NoAnswerError as error:
            self._run.say(f"{error}; the teller will try again, with the same command id")
        for name in HANDLERS:
            self._restart(name)
        answer = self._bank.ask("deposit", "account-1", timeout=60.0, command="the-same", cents=500)
        again = "it was carried out already, once" if answer.get("again") else "it was carried out now"
        self._run.say(f"the second try was answered: {again}")

    def _two_tellers(self) -> int:
        """Both read the same balance and want to withdraw, provided that nothing has changed: only one can."""
        self._bank.ask("deposit", "account-2", cents=1_000)
        read = self._bank.ask("balance", "account-2")
        both = [self._bank.send("withdraw", "account-2", cents=700, expected_version=read["version"]) for _ in range(2)]
        answers = [future.result(SETTLED_SECONDS) for future in both]
        conflicts = [answer.get("reason") for answer in answers].count("conflict")
        self._run.say(
            f"two tellers withdrew at version {read['version']}: {conflicts} was refused, and must read again"
        )
        return conflicts

    def _settle(self) -> None:
        """Until every command is answered and no money is on its way."""
        self._bank.flush()
        unanswered = wait(self._answers, SETTLED_SECONDS).not_done
        if unanswered:
            raise ExampleError(f"{len(unanswered)} of {len(self._answers)} commands were never answered")
        deadline = time.monotonic() + SETTLED_SECONDS
        while money_on_the_way(self._run.bootstrap):
            if time.monotonic() > deadline:
                raise ExampleError("money is still on its way")
            time.sleep(0.1)

    def _report(self, conflicts: int) -> int:
        bootstrap = self._run.bootstrap
        scratch = [from_scratch(bootstrap, number) for number in range(PARTITIONS)]
        snapshot = [from_snapshot(bootstrap, number) for number in range(PARTITIONS)]
        first: dict[str, Account] = {name: found for shard in scratch for name, found in shard.accounts.items()}
        second: dict[str, Account] = {name: found for shard in snapshot for name, found in shard.accounts.items()}
        said = {name: self._bank.ask("balance", name) for name in first}
        different = sum(
            first[name] != second.get(name)
            or (first[name].balance, first[name].version) != (said[name]["balance"], said[name]["version"])
            for name in first
        )
        answers = Counter(
            "accepted" if answer["accepted"] else answer["reason"] for answer in (f.result() for f in self._answers)
        )
        lowest = sorted(lowest_balances(bootstrap).items(), key=lambda item: item[1])[:3]
        broken = broken_rules(bootstrap)
        values = {
            "commands": {"sent": len(self._answers), **answers},
            "handlers_killed": self._kills,
            "accounts": len(first),
            "accounts_that_differ": different,
            "events_read": {
                "from_scratch": sum(shard.events_read for shard in scratch),
                "after_snapshots": sum(shard.events_read for shard in snapshot),
            },
            "snapshots_read": sum(shard.snapshots_read for shard in snapshot),
            "turnover_in_cents": turnover(bootstrap),
            "a_new_question_lowest_balances_ever": dict(lowest),
            "conflicts_of_two_tellers": conflicts,
            "malformed_commands_set_aside": sum(1 for _ in read_topic(bootstrap, DEAD_LETTERS)),
            "late_answers": self._bank.late,
            "broken_rules": len(broken),
        }
        for sentence in broken:
            self._run.say(sentence, "red")
        self._run.report(values, "The bank")
        return 0 if not different and not broken and conflicts == 1 else 1
