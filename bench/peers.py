"""More servers that speak Kafka's protocol: franz-go's kfake, in Go, and Nisshi, once called Tansu, in Rust.

They are built from the source in their languages' registries, once, into `bench` in the cache folder
(`MILLSTREAM_CACHE`, or `.cache` at the root of the repository). Where one cannot be had, `is_available` says why.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

from bench.systems import SETTINGS, System
from millstream.jvm.maven import CACHE_VARIABLE

_KFAKE = Path(__file__).resolve().parent / "kfake"


def _cache() -> Path:
    root = Path(__file__).resolve().parent.parent
    return Path(os.environ.get(CACHE_VARIABLE) or root / ".cache").resolve() / "bench"


class Peer(System):
    """A server that is built from source."""

    version: str
    tool: str
    """What builds it."""

    @classmethod
    @abstractmethod
    def binary(cls) -> Path:
        """The program in the cache; its folder has the version in its name."""

    @classmethod
    @abstractmethod
    def build(cls) -> None:
        """Makes `binary`; it appears when it is complete."""

    @classmethod
    def is_available(cls) -> str | None:
        """None when it is built or there is what builds it, else the reason in one sentence."""
        if cls.binary().exists() or shutil.which(cls.tool):
            return None
        return f"there is no `{cls.tool}` on this machine"

    def prepare(self) -> None:
        if not self.binary().exists():
            self.build()

    @classmethod
    def _run(cls, *command: str, folder: Path | None = None) -> None:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            last = " | ".join(done.stderr.splitlines()[-5:])
            raise RuntimeError(f"{cls.name} {cls.version} could not be built: {last}")


def _kfake_version() -> str:
    """The one in go.mod."""
    found = re.search(r"franz-go/pkg/kfake (\S+)", (_KFAKE / "go.mod").read_text())
    assert found is not None
    return found[1]


class Kfake(Peer):
    """Franz-go's fake Kafka, as the server in `bench/kfake` runs it: made for tests, all in memory.

    It has no releases, the version is that of a commit.
    """

    name = "kfake"
    color = "#2ca02c"
    durable = False
    version = _kfake_version()
    tool = "go"

    @classmethod
    def binary(cls) -> Path:
        sources = b"".join(file.read_bytes() for file in sorted(_KFAKE.iterdir()))
        return _cache() / f"kfake-{cls.version}-{hashlib.sha256(sources).hexdigest()[:8]}" / "kfake"

    @classmethod
    def build(cls) -> None:
        new = cls.binary().with_suffix(".new")
        cls._run("go", "build", "-mod=readonly", "-buildvcs=false", "-o", str(new), ".", folder=_KFAKE)
        new.rename(cls.binary())

    def command(self) -> Sequence[str]:
        return [str(self.binary()), "-port", str(self.port)]


class Tansu(Peer):
    """Nisshi, which was Tansu until version 0.6: a broker without state, before a storage engine.

    The engine is memory, its default; the one for production is PostgreSQL.
    """

    name = "Nisshi (Tansu)"
    color = "#d62728"
    durable = False
    version = "0.8.1"
    tool = "cargo"

    @classmethod
    def binary(cls) -> Path:
        return _cache() / f"nisshi-{cls.version}" / "bin" / "nisshi"

    @classmethod
    def build(cls) -> None:
        cls._run(
            "cargo", "install", "--locked", "--root", str(cls.binary().parent.parent), "--no-default-features",
            "--features", "dynostore,libsql", f"nisshi@{cls.version}",
        )  # fmt: skip

    def storage(self) -> str:
        return "memory://nisshi/"

    def command(self) -> Sequence[str]:
        url = f"tcp://{self.bootstrap}"
        return [
            str(self.binary()), "broker", "--listener-url", url, "--advertised-listener-url", url,
            "--storage-engine", self.storage(),
            "--group-initial-rebalance-delay", f"{SETTINGS['group.initial.rebalance.delay.ms']}ms",
        ]  # fmt: skip


PEERS: tuple[type[Peer], ...] = (Kfake, Tansu)
