"""PostgreSQL, from the system's package: one database, and one user, who owns the server.

The cluster is made by `initdb`, with SCRAM passwords for everybody and no socket but the one on the loopback address.
A commit reaches the operating system but is not forced to the disk: it outlives the process, not the machine.

PostgreSQL refuses to run as root. Started by root it runs as `postgres`, or as `nobody` where there is no such user, in
a sub-folder that belongs to that user, who must be able to get there. The password is set when the cluster is made.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
from pathlib import Path

from millstream.jvm.progress import Progress, Step
from millstream.stores.child import account
from millstream.stores.errors import StoreError
from millstream.stores.programs import find_program
from millstream.stores.sql import SqlStore

FOLDERS = ("/usr/lib/postgresql/*/bin", "/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin")
UNPRIVILEGED = ("postgres", "nobody")
TUNING = ("fsync=off", "full_page_writes=off", "shared_buffers=64MB", "max_connections=200", "log_min_messages=warning")


class PostgreSQL(SqlStore):
    """A PostgreSQL server."""

    title = "PostgreSQL"
    scheme = "postgresql"
    jdbc_scheme = "postgresql"
    log_marks = ("FATAL: ", "error: ", "ERROR: ")
    stop_signal = signal.SIGINT  # at SIGTERM it would wait until its clients have gone

    def _prepare(self, progress: Progress) -> None:
        self._server = find_program(
            "PostgreSQL", ("postgres",), package="postgresql", formula="postgresql", folders=FOLDERS
        )
        self._user = self._unprivileged_user()
        password_file = self._settle_password()
        if self._data.exists():
            return
        progress(Step("preparing PostgreSQL's data directory"))
        with self._new_data() as part:
            if self._user is not None:
                shutil.chown(part, self._user)
                shutil.chown(password_file, self._user)
            self._tool([
                str(Path(self._server).with_name("initdb")), f"--pgdata={part}", f"--username={self.user}",
                "--auth=scram-sha-256", f"--pwfile={password_file}", "--encoding=UTF8", "--locale=C", "--no-sync",
            ])  # fmt: skip
            if self.database != "postgres":
                name = '"' + self.database.replace('"', '""') + '"'
                self._tool([self._server, "--single", "-D", str(part), "postgres"], text=f"CREATE DATABASE {name}\n")

    def _launch(self) -> None:
        settings = (f"listen_addresses={self.host}", f"port={self.port}", "unix_socket_directories=", *TUNING)
        self._run(
            [self._server, "-D", str(self._data), *(part for setting in settings for part in ("-c", setting))],
        )

    def _answers(self) -> bool:
        fields = b"user\0" + self.user.encode() + b"\0database\0" + self.database.encode() + b"\0\0"
        version = (3 << 16).to_bytes(4, "big")
        answer = self._ask((len(fields) + 8).to_bytes(4, "big") + version + fields)
        return answer[:1] == b"R"  # asks for the password; one that still recovers says E

    def _unprivileged_user(self) -> str | None:
        if os.geteuid() != 0:
            return None
        known = {entry.pw_name for entry in pwd.getpwall()}
        user = next((name for name in UNPRIVILEGED if name in known), None)
        if user is None:
            raise StoreError(f"PostgreSQL refuses to run as root, and there is no user {' or '.join(UNPRIVILEGED)}")
        if self._temporary:
            self.folder.chmod(0o711)  # temporary folders are for their owner alone; others may pass, and read nothing
        reaches = subprocess.run(["test", "-x", str(self.folder)], check=False, cwd="/", **account(user))
        if reaches.returncode != 0:
            raise StoreError(
                f"PostgreSQL refuses to run as root, and the user {user}, as which it runs instead, cannot get to "
                f"{self.folder}: give another folder, or none"
            )
        return user
