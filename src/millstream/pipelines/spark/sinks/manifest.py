"""Which files belong to a batch, written down before the first of them is put in place.

    _millstream/<owner>/<batch>/<attempt>/   the batch's files as Spark wrote them, out of readers' sight
    _millstream/<owner>/<batch>.plan         the manifest: {"moves": [[from, to], ...]}
    _millstream/<owner>/<batch>.done         the same file when all of that is done
    part-<owner>-<batch>-<n>.<format>        the files in place, in `column=value/` folders if there are partitions

`_millstream` is in the folder that is written to, so that files are moved and not copied. The owner is a hash of
pipeline, query and sink: several may write into one folder. What a batch finds when it comes again:

| there is | it was broken off | what is done |
|---|---|---|
| `.done` of it or a later one | after the end | nothing |
| `.plan` | while moving | the moves that are missing; the rows are not looked at |
| neither | before any file was in place | what is in the batch's folder is removed, and the batch written anew |

Each attempt has a folder of its own, as tasks of a killed driver may write for a while after it. The marks of the last
batches (`KEPT`) stay, for people; older ones go.
"""

from __future__ import annotations

import json
import re
import secrets
from typing import NamedTuple

from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.sinks.folder import Folder
from millstream.pipelines.spark.sinks.names import short_hash
from millstream.pipelines.spark.sinks.writer import Batch

HOME = "_millstream"
KEPT = 5
"""Marks of so many batches are kept."""
_PLAN, _DONE = ".plan", ".done"
_ENTRY = re.compile(r"(\d+)(\..+)?")
_SPARKS_FILE = re.compile(r"part-.*[-.]c\d+((?:\.\w+)*)")
"""A file as Spark names it: part, task, job, number; then what tells the format."""


class Move(NamedTuple):
    """A file's name in the batch's folder, and its name in place."""

    source: str
    target: str


class Manifest:
    """One batch in one folder."""

    def __init__(self, folder: Folder, batch: Batch) -> None:
        self._folder = folder
        self._number = batch.number
        self._owner = short_hash(batch.pipeline, batch.query, batch.sink)
        self._home = f"{HOME}/{self._owner}"
        self._entry = f"{self._home}/{batch.number:06d}"

    def is_done(self) -> bool:
        return any(kind == _DONE and number >= self._number for number, kind, _ in self._entries())

    def planned(self) -> list[Move] | None:
        """The moves, if it is known which they are."""
        if not self._folder.exists(self._entry + _PLAN):
            return None
        return [Move(*move) for move in json.loads(self._folder.read(self._entry + _PLAN))["moves"]]

    def begin(self) -> str:
        """A new folder for the batch's files; what an earlier attempt left is removed."""
        self._folder.remove(self._entry)
        return f"{self._entry}/{secrets.token_hex(4)}"

    def plan(self, staging: str) -> list[Move]:
        """Writes down which files in `staging` go where; from now on the batch has these files and no others."""
        moves: list[Move] = []
        for name in self._folder.files(staging):
            path, _, file = name.rpartition("/")
            match = _SPARKS_FILE.fullmatch(file)
            if match:
                target = f"part-{self._owner}-{self._number:06d}-{len(moves):05d}{match[1]}"
                moves.append(Move(f"{staging}/{name}", f"{path}/{target}" if path else target))
        if moves:
            self._folder.write(self._entry + _PLAN, json.dumps({"moves": moves}, indent=1))
        return moves

    def carry_out(self, moves: list[Move]) -> None:
        """Puts the files in place; those that are in place already stay."""
        for move in moves:
            try:
                self._folder.move(*move)
            except FileNotFoundError as error:
                plan, done = (self._folder.path(self._entry + kind) for kind in (_PLAN, _DONE))
                raise PipelineError(
                    f"{error.args[0]} is gone, which batch {self._number} was putting in place when it was broken "
                    f"off; if it was removed on purpose, rename {plan} to {done}"
                ) from error

    def finish(self) -> None:
        """The batch is done. Then all that nobody needs any more goes."""
        self._folder.move(self._entry + _PLAN, self._entry + _DONE)
        for number, kind, name in self._entries():
            if number <= self._number - (KEPT if kind == _DONE else 0):
                self._folder.remove(f"{self._home}/{name}")

    def drop(self) -> None:
        """The batch has no rows, so nothing stays of it."""
        self._folder.remove(self._entry)

    def _entries(self) -> list[tuple[int, str, str]]:
        """(batch, kind, name) of all that is kept; the kind is empty for a batch's folder."""
        found = [(_ENTRY.fullmatch(name), name) for name in self._folder.names(self._home)]
        return [(int(match[1]), match[2] or "", name) for match, name in found if match]
