"""What the SQL stores have in common: a user, a password, a database, and the addresses made of them."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from millstream.stores.errors import StoreError
from millstream.stores.store import Store


class SqlStore(Store):
    """A store with a database and a user who may do everything."""

    scheme: ClassVar[str]
    jdbc_scheme: ClassVar[str]

    def __init__(
        self,
        folder: Path | None = None,
        *,
        port: int | None = None,
        user: str = "millstream",
        password: str = "",
        database: str = "millstream",
    ) -> None:
        """`password`: by default the folder's own, which is made up at its first start."""
        super().__init__(folder, port=port)
        self.user = user
        self.password = password
        self.database = database

    @property
    def jdbc_url(self) -> str:
        """Without user and password, which are given beside it."""
        return f"jdbc:{self.jdbc_scheme}://{self.host}:{self.port}/{self.database}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.user}:{self.password}@{self.host}:{self.port}/{self.database}"

    def _settle_password(self) -> Path:
        """The file with the password, which is known from here on."""
        file = self.folder / "password"
        if file.exists():
            kept = file.read_text()
            if self.password not in ("", kept):
                raise StoreError(f"{self.title} in {self.folder} has another password: give none, or another folder")
            self.password = kept
            return file
        self.password = self.password or secrets.token_hex(12)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            out.write(self.password)
        return file

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @contextmanager
    def _new_data(self) -> Iterator[Path]:
        """An empty folder for a new data directory, which gets its name when it is whole."""
        part = self.folder / "data.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(mode=0o700)
        yield part
        part.rename(self._data)
