"""What the bank's rules are, and nothing of where the records are kept.

`decide` looks at an account and a command and says which events follow, or why none do. `Account.after` is the only way
in which an account changes: by an event. So the events alone make the account, whenever they are read, by whomever.

A transfer moves money between accounts that may live in different partitions, on different machines. It is a chain of
commands: `transfer` takes the money (event `sent`) and commands the other account to `receive` it; if there is no such
account, that commands the first one to take it back (`return`). In between the money is on its way, never lost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

Command = dict[str, Any]
"""`id`, `kind`, `account`; and, by kind, `cents`, `to` or `from`; `expected_version` if the sender insists on one."""
Event = dict[str, Any]
"""`account`, its `version` after the event, `kind`, `cents`, the `command`'s id, the `other` account of a transfer."""

REMEMBERED = 50
"""An account remembers the ids of so many commands: a command that comes again, since its sender heard nothing, is not
carried out again."""
SIGNS = {"opened": 0, "deposited": 1, "withdrawn": -1, "sent": -1, "received": 1, "returned": 1}
"""What an event does to the balance."""
EVENT_OF = {
    "open": "opened",
    "deposit": "deposited",
    "withdraw": "withdrawn",
    "transfer": "sent",
    "receive": "received",
    "return": "returned",
}


class MalformedError(Exception):
    """Something that is no command at all."""


@dataclass(frozen=True)
class Account:
    """What is known of an account after its last event."""

    name: str
    version: int = 0
    balance: int = 0
    commands: tuple[str, ...] = ()

    def after(self, event: Event) -> Account:
        return replace(
            self,
            version=event["version"],
            balance=self.balance + SIGNS[event["kind"]] * event["cents"],
            commands=(*self.commands, event["command"])[-REMEMBERED:],
        )

    def as_dict(self) -> dict[str, Any]:
        return {"version": self.version, "balance": self.balance, "commands": list(self.commands)}


@dataclass(frozen=True)
class Decision:
    """What follows from a command: at most one event, commands to other accounts, and the answer."""

    answer: dict[str, Any]
    event: Event | None = None
    commands: tuple[Command, ...] = ()


def checked(value: Any) -> Command:
    """The command, if it is one."""
    if not isinstance(value, dict):
        raise MalformedError("a command is a JSON object")
    for name in ("id", "kind", "account"):
        if not isinstance(value.get(name), str) or not value[name]:
            raise MalformedError(f"{name} is missing")
    if value["kind"] not in {*EVENT_OF, "balance"}:
        raise MalformedError(f"{value['kind']!r} is none of {', '.join([*EVENT_OF, 'balance'])}")
    cents = value.get("cents", 0)
    if not isinstance(cents, int) or cents < 0 or (cents == 0 and value["kind"] not in ("open", "balance")):
        raise MalformedError(f"cents must be a whole number above 0, not {cents!r}")
    if value["kind"] == "transfer" and not isinstance(value.get("to"), str):
        raise MalformedError("a transfer needs `to`")
    return value


def decide(account: Account | None, command: Command) -> Decision:
    """What the bank's rules say. The account is not changed here."""
    kind, cents = command["kind"], command.get("cents", 0)
    if account is not None and command["id"] in account.commands:
        return Decision(_accepted(account, again=True))
    if account is None and kind == "receive":
        back = {"id": f"{command['id']}/return", "kind": "return", "account": command["from"], "cents": cents}
        return Decision(_rejected("no such account"), commands=({**back, "from": command["account"]},))
    if account is None and kind != "open":
        return Decision(_rejected("no such account"))
    if account is not None and kind == "open":
        return Decision(_rejected("the account exists"))
    if account is not None and kind == "balance":
        return Decision(_accepted(account))
    now = account or Account(command["account"])
    if command.get("expected_version", now.version) != now.version:
        return Decision({**_rejected("conflict"), "version": now.version, "balance": now.balance})
    if kind in ("withdraw", "transfer") and cents > now.balance:
        return Decision({**_rejected("not enough money"), "version": now.version, "balance": now.balance})
    event = {
        "account": now.name,
        "version": now.version + 1,
        "kind": EVENT_OF[kind],
        "cents": cents,
        "command": command["id"],
        "other": command.get("to") or command.get("from"),
    }
    commands: tuple[Command, ...] = ()
    if kind == "transfer":
        there = {"id": f"{command['id']}/receive", "kind": "receive", "account": command["to"], "cents": cents}
        commands = ({**there, "from": now.name},)
    return Decision(_accepted(now.after(event)), event, commands)


def _accepted(account: Account, *, again: bool = False) -> dict[str, Any]:
    answer = {"accepted": True, "version": account.version, "balance": account.balance}
    return {**answer, "again": True} if again else answer


def _rejected(reason: str) -> dict[str, Any]:
    return {"accepted": False, "reason": reason}
