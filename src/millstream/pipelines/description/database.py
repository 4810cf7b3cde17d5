"""Where a SQL database is: one URL, from which both its JDBC and its Python address follow.

    sqlite:///relative.db · sqlite:////absolute.db · mysql://user:password@host:3306/name ·
    mariadb://user@host/name · postgresql://user:password@host:5432/name

The query part goes to the JDBC driver as it is. A password is better not written down: `${NAME}` in a pipeline file is
replaced by the environment's value, and a password is never printed; so no message here quotes the URL.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from pydantic import AfterValidator

from millstream.pipelines.description.fields import Words, absolute

KINDS = {"sqlite": 0, "mysql": 3306, "mariadb": 3306, "postgresql": 5432}
"""Kind -> default port."""
FORMS = "sqlite:///FILE, mysql://USER@HOST/NAME, mariadb://USER@HOST/NAME or postgresql://USER@HOST/NAME"


class Database(NamedTuple):
    """A database's URL taken apart."""

    kind: str
    host: str
    port: int
    name: str
    user: str
    password: str
    query: str

    @property
    def jdbc_url(self) -> str:
        query = f"?{self.query}" if self.query else ""
        if self.kind == "sqlite":
            return f"jdbc:sqlite:{self.name}{query}"
        if self.kind == "postgresql":
            return f"jdbc:postgresql://{self._address}/{self.name}{query}"
        # Spark quotes names rightly for `jdbc:mysql:` only, and MariaDB's driver takes that scheme on request.
        return f"jdbc:mysql://{self._address}/{self.name}{query + '&' if query else '?'}permitMysqlScheme"

    @property
    def safe_url(self) -> str:
        """For people: without the password."""
        if self.kind == "sqlite":
            return f"sqlite:///{self.name}"
        user = f"{self.user}@" if self.user else ""
        return f"{self.kind}://{user}{self._address}/{self.name}"

    @property
    def _address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_database(url: str) -> Database:
    """The URL taken apart; ValueError says what is wrong."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(
            "the database URL cannot be taken apart: write HOST or HOST:PORT after the @, and in the user and password "
            "%40 for @, %2F for /, %3A for :, %23 for # and %3F for ?"
        ) from None
    kind = {"postgres": "postgresql"}.get(parts.scheme, parts.scheme)
    if kind not in KINDS:
        what = f"{kind!r} is not a database this can reach" if kind else "this is not the URL of a database"
        raise ValueError(f"{what}: write {FORMS}")
    name = unquote(parts.path.removeprefix("/"))
    if not name:
        raise ValueError(f"the database URL names no {'file' if kind == 'sqlite' else 'database'} after the host")
    if kind == "sqlite":
        if parts.netloc:
            raise ValueError("the path of a SQLite file follows after three slashes: sqlite:///FILE")
        return Database(kind, "", 0, str(Path(name).absolute()), "", "", parts.query)
    if not parts.hostname:
        raise ValueError("the database URL names no host")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Database(kind, parts.hostname, port or KINDS[kind], name, user, password, parts.query)


def _checked(url: str) -> str:
    """The URL with an absolute path, if it is a file's."""
    database = parse_database(url)
    if database.kind != "sqlite":
        return url
    path = absolute(unquote(urlsplit(url).path.removeprefix("/")))
    return f"sqlite:///{quote(path)}" + (f"?{database.query}" if database.query else "")


DatabaseUrl = Annotated[str, AfterValidator(_checked), Words("the URL of a database")]
