"""MariaDB, from the system's package: one database and one user who may do everything.

The data directory is made by `mariadb-install-db`; user, password and database are set at each start by an init file,
which MariaDB runs before it lets anybody in. A commit reaches the operating system but is not forced to the disk: it
outlives the process, not the machine.
"""

from __future__ import annotations

import os
import re

from millstream.jvm.progress import Progress, Step
from millstream.stores.errors import StoreError
from millstream.stores.programs import find_program
from millstream.stores.sql import SqlStore

TUNING = (
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-doublewrite=OFF",
    "--innodb-buffer-pool-size=128M",
    "--innodb-log-file-size=48M",
    "--performance-schema=OFF",
    "--skip-log-bin",
)


class MariaDB(SqlStore):
    """A MariaDB server."""

    title = "MariaDB"
    scheme = "mysql"
    jdbc_scheme = "mariadb"
    log_marks = ("[ERROR] ", "ERROR: ", "FATAL ERROR: ")

    def _prepare(self, progress: Progress) -> None:
        self._server = _find("mariadbd", "mysqld")
        if not self._data.exists():
            if re.search(r"\s", str(self.folder)):
                raise StoreError(f"MariaDB's set-up program takes no folder with a space in its name: {self.folder}")
            progress(Step("preparing MariaDB's data directory"))
            with self._new_data() as part:
                self._tool([
                    _find("mariadb-install-db", "mysql_install_db"), "--no-defaults", f"--datadir={part}",
                    "--auth-root-authentication-method=socket", "--skip-test-db", "--skip-name-resolve",
                    *TUNING, *_as_root(),
                ])  # fmt: skip
        self._settle_password()
        (self.folder / "tmp").mkdir(exist_ok=True)
        (self.folder / "init.sql").write_text(
            f"CREATE DATABASE IF NOT EXISTS {_name(self.database)} CHARACTER SET utf8mb4;\n"
            f"CREATE OR REPLACE USER {_text(self.user)}@'127.0.0.1' IDENTIFIED BY {_text(self.password)};\n"
            f"GRANT ALL ON *.* TO {_text(self.user)}@'127.0.0.1' WITH GRANT OPTION;\n"
        )
        (self.folder / "init.sql").chmod(0o600)

    def _launch(self) -> None:
        self._run([
            self._server, "--no-defaults", *_as_root(),
            f"--datadir={self._data}", f"--tmpdir={self.folder}/tmp", f"--init-file={self.folder}/init.sql",
            f"--pid-file={self.folder}/pid", f"--secure-file-priv={self.folder}/tmp",
            "--socket=mariadb.sock",  # in the data directory: paths of sockets must be short
            f"--bind-address={self.host}", f"--port={self.port}", "--skip-name-resolve",
            "--character-set-server=utf8mb4", *TUNING,
        ])  # fmt: skip

    def _answers(self) -> bool:
        greeting = self._ask(b"")
        return len(greeting) > 4 and greeting[4] == 10  # the version of the protocol; an error has 255 there


def _find(*names: str) -> str:
    return find_program("MariaDB", names, package="mariadb-server", formula="mariadb")


def _as_root() -> list[str]:
    """MariaDB runs as root only if it is told to."""
    return ["--user=root"] if os.geteuid() == 0 else []


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _name(value: str) -> str:
    return "`" + value.replace("`", "``") + "`"
