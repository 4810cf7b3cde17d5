"""Listeners as settings write them: `NAME://host:port`, several with commas between them.

A listener whose name maps to a security protocol other than PLAINTEXT is refused: this server speaks plain text. The
listeners of the controller are read and left out, since a one-node server needs no address for itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from millstream.broker.configs.settings import Settings

_LISTENER: Final = re.compile(r"([0-9A-Za-z_.\-]+)://(?:\[([0-9A-Fa-f:.%a-z]*)\]|([0-9A-Za-z\-%._]*)):(-?[0-9]+)")


class Listener(NamedTuple):
    name: str
    host: str
    """Empty: all addresses of the machine."""
    port: int


def parse_listener(text: str) -> Listener:
    match = _LISTENER.fullmatch(text.strip())
    if match is None or not 0 <= int(match[4]) <= 65535:
        raise ValueError(f"{text!r} is not a listener: it must be NAME://host:port with a port from 0 to 65535")
    return Listener(match[1].upper(), match[2] or match[3] or "", int(match[4]))


def parse_listeners(texts: list[str], controller_names: Collection[str] = ()) -> list[Listener]:
    """The listeners of the broker; ValueError if one is malformed, or two share a name or a port."""
    listeners = [parse_listener(text) for text in texts]
    names = [listener.name for listener in listeners]
    if len(set(names)) != len(names):
        raise ValueError("each listener must have a name of its own")
    ports = [(listener.host, listener.port) for listener in listeners if listener.port]
    if len(set(ports)) != len(ports):
        raise ValueError("each listener must have an address of its own")
    return [listener for listener in listeners if listener.name not in controller_names]


def broker_listeners(settings: Settings) -> list[Listener]:
    """The listeners that clients connect to."""
    return parse_listeners(settings.list("listeners"), _controller_names(settings))


def advertised_listeners(settings: Settings) -> dict[str, tuple[str, int]]:
    """What clients are told instead of the address that a listener listens on, by its name."""
    advertised = parse_listeners(settings.list("advertised.listeners"), _controller_names(settings))
    return {listener.name: (listener.host, listener.port) for listener in advertised if listener.host}


def _controller_names(settings: Settings) -> set[str]:
    return {name.upper() for name in settings.list("controller.listener.names")}


def parse_protocol_map(text: str) -> Mapping[str, str]:
    """Listener name -> security protocol, from `NAME:PROTOCOL,...`."""
    protocols = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = entry.partition(":")
        if not colon or protocol.strip().upper() not in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"):
            raise ValueError(f"{entry!r} must be a listener name, a colon and a security protocol")
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols
