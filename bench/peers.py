"""More servers that speak Kafka's protocol: franz-go's kfake, in Go, and Tansu, in Rust.

They are built from the source in their languages' registries into `bench` in the cache folder (`MILLSTREAM_CACHE`, or
`.cache` at the root of the repository): kfake in half a minute when it is first started, Tansu by `make bench-peers`.
Where one cannot be had, `is_available` says why.
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

from bench.systems import System
from millstream.jvm.maven import CACHE_VARIABLE

_KFAKE = Path(__file__).resolve().parent / "kfake"


def _cache() -> Path:
    root = Path(__file__).resolve().parent.parent
    return Path(os.environ.get(CACHE_VARIABLE) or root / ".cache").resolve() / "bench"


class Peer(System):
    """A server that is built from source."""

    version: str

    @classmethod
    @abstractmethod
    def binary(cls) -> Path:
        """The program in the cache; its folder has the version in its name."""

    @classmethod
    @abstractmethod
    def is_available(cls) -> str | None:
        """None when it is built, or `prepare` can build it; else the reason in one sentence."""

    def prepare(self) -> None:
        if reason := self.is_available():
            raise RuntimeError(f"{self.name} {self.version} cannot be used: {reason}")


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

    @classmethod
    def binary(cls) -> Path:
        sources = b"".join(file.read_bytes() for file in sorted(_KFAKE.iterdir()))
        return _cache() / f"kfake-{cls.version}-{hashlib.sha256(sources).hexdigest()[:8]}" / "kfake"

    @classmethod
    def is_available(cls) -> str | None:
        return None if cls.binary().exists() or shutil.which("go") else "there is no `go` on this machine"

    def prepare(self) -> None:
        super().prepare()
        if self.binary().exists():
            return
        new = self.binary().with_suffix(".new")
        build = ["go", "build", "-mod=readonly", "-buildvcs=false", "-o", str(new), "."]
        done = subprocess.run(build, cwd=_KFAKE, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{self.name} could not be built: " + " | ".join(done.stderr.splitlines()[-5:]))
        new.rename(self.binary())

    def command(self) -> Sequence[str]:
        return [str(self.binary()), "-port", str(self.port)]


class Tansu(Peer):
    """A broker without state before a storage engine, which is memory here, its default.

    `make bench-peers` builds it. Its successor, Nisshi, wants a newer Rust than most machines have.
    """

    name = "Tansu"
    color = "#d62728"
    durable = False
    version = "0.6.0"

    @classmethod
    def binary(cls) -> Path:
        return _cache() / f"tansu-{cls.version}" / "bin" / "tansu"

    @classmethod
    def is_available(cls) -> str | None:
        return None if cls.binary().exists() else "it is not built; `make bench-peers` does that in about 8 minutes"

    def command(self) -> Sequence[str]:
        url = f"tcp://{self.bootstrap}"
        return [str(self.binary()), "broker", "--listener-url", url, "--advertised-listener-url", url, "--silent"]


PEERS: tuple[type[Peer], ...] = (Kfake, Tansu)
