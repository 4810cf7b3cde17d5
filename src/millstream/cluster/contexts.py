"""Which cluster is meant. Whoever says it first is heard, in this order:

1. a flag: `--bootstrap` or `--context`
2. the environment: `MILLSTREAM_BOOTSTRAP`, then `MILLSTREAM_CONTEXT`
3. the current context of the file of contexts
4. the platform that runs on this machine (the one started last, if there are several)
5. 127.0.0.1:9092

The file is `contexts.toml` in `millstream` under the user's config home (`MILLSTREAM_CONFIG` names another one):

    current = "prod"

    [contexts.prod]
    bootstrap = "kafka-1:9092,kafka-2:9092"

    [contexts.prod.properties]
    "security.protocol" = "SSL"
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from millstream.cluster import local
from millstream.cluster.connection import Connection
from millstream.cluster.errors import BadInput, NotFound

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
FILE_VARIABLE = "MILLSTREAM_CONFIG"
CONTEXT_VARIABLE = "MILLSTREAM_CONTEXT"
BOOTSTRAP_VARIABLE = "MILLSTREAM_BOOTSTRAP"


class Contexts(NamedTuple):
    """The file's content."""

    current: str | None
    by_name: Mapping[str, Connection]

    def get(self, name: str, named_by: str) -> Connection:
        if name not in self.by_name:
            known = ", ".join(sorted(self.by_name)) or "none yet"
            raise NotFound(f"{named_by}: there is no context {name!r}; there are: {known} (`millstream context add`)")
        return self.by_name[name]

    def with_context(self, name: str, connection: Connection, *, use: bool) -> Contexts:
        """One more, or another one of that name; the current one as well if `use`."""
        return Contexts(name if use else self.current, {**self.by_name, name: connection})

    def without(self, name: str) -> Contexts:
        """One less; if it was the current one, none is."""
        left = {other: connection for other, connection in self.by_name.items() if other != name}
        return Contexts(None if self.current == name else self.current, left)


def resolve(bootstrap: str | None, context: str | None, environ: Mapping[str, str] = os.environ) -> Connection:
    """The cluster that a command is meant for."""
    if bootstrap and context:
        raise BadInput("--bootstrap and --context both name a cluster: give one of them")
    if bootstrap:
        connection = Connection(bootstrap)
    elif context:
        connection = load(environ).get(context, "--context")
    elif environ.get(BOOTSTRAP_VARIABLE):
        connection = Connection(environ[BOOTSTRAP_VARIABLE])
    elif environ.get(CONTEXT_VARIABLE):
        connection = load(environ).get(environ[CONTEXT_VARIABLE], CONTEXT_VARIABLE)
    else:
        contexts = load(environ)
        if contexts.current is not None:
            connection = contexts.get(contexts.current, str(path(environ)))
        else:
            platforms = local.running(environ)
            connection = Connection(platforms[0].bootstrap if platforms else DEFAULT_BOOTSTRAP)
    if not connection.addresses():  # malformed ones are said now
        raise BadInput(f"{connection.bootstrap!r} names no address: it must be HOST:PORT, several with commas")
    return connection


def path(environ: Mapping[str, str] = os.environ) -> Path:
    if FILE_VARIABLE in environ:
        return Path(environ[FILE_VARIABLE])
    home = environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "millstream" / "contexts.toml"


def load(environ: Mapping[str, str] = os.environ) -> Contexts:
    """The file, or nothing if there is none. BadInput if it cannot be read."""
    file = path(environ)
    try:
        data = tomllib.loads(file.read_text())
        by_name = {name: _connection(name, entry) for name, entry in data.get("contexts", {}).items()}
        return Contexts(data.get("current"), by_name)
    except FileNotFoundError:
        return Contexts(None, {})
    except (tomllib.TOMLDecodeError, ValueError, AttributeError, OSError) as error:
        raise BadInput(f"{file} is not a file of contexts: {error}") from error


def save(contexts: Contexts, environ: Mapping[str, str] = os.environ) -> None:
    """Replaces the file in one step; only its owner may read it, since properties can be secrets."""
    import tomli_w

    data: dict[str, Any] = {} if contexts.current is None else {"current": contexts.current}
    data["contexts"] = {
        name: {"bootstrap": connection.bootstrap, "properties": dict(connection.properties)}
        for name, connection in sorted(contexts.by_name.items())
    }
    file = path(environ)
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".new")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        tomli_w.dump(data, out)
    temporary.replace(file)


def _connection(name: str, entry: Mapping[str, Any]) -> Connection:
    bootstrap, properties = entry.get("bootstrap"), entry.get("properties", {})
    if not isinstance(bootstrap, str) or not all(isinstance(value, str) for value in properties.values()):
        raise ValueError(f"context {name} needs a bootstrap, and its properties must be texts")
    return Connection(bootstrap, properties)
