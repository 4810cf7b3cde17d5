"""Which cluster is meant: the order in which it is looked for, and the file of contexts."""

import os
from pathlib import Path

import pytest

from millstream.cluster import contexts, local
from millstream.cluster.connection import Connection
from millstream.cluster.contexts import Contexts, resolve
from millstream.cluster.errors import BadInput, NotFound


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment of its own, with nothing in it yet."""
    return {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_STATE_HOME": str(tmp_path / "state")}


def test_flag_over_environment_over_file_over_running_platform_over_default(
    environ: dict[str, str], tmp_path: Path
) -> None:
    assert resolve(None, None, environ) == Connection("127.0.0.1:9092")

    data = tmp_path / "data"
    lock = local.take_lock(data)
    assert lock is not None
    local.record(local.Platform("embedded", "127.0.0.1:5001", str(data), os.getpid(), 1.0), environ)
    assert resolve(None, None, environ) == Connection("127.0.0.1:5001")

    prod, test = Connection("prod:9092", {"security.protocol": "SSL"}), Connection("test:9092")
    contexts.save(Contexts(None, {"prod": prod, "test": test}), environ)
    assert resolve(None, None, environ).bootstrap == "127.0.0.1:5001"
    contexts.save(Contexts("prod", {"prod": prod, "test": test}), environ)
    assert resolve(None, None, environ) == prod

    environ["MILLSTREAM_CONTEXT"] = "test"
    assert resolve(None, None, environ) == test
    environ["MILLSTREAM_BOOTSTRAP"] = "environment:9092"
    assert resolve(None, None, environ) == Connection("environment:9092")
    assert resolve(None, "prod", environ) == prod
    assert resolve("flag:9092", None, environ) == Connection("flag:9092")
    os.close(lock)


def test_a_platform_that_has_ended_is_not_found(environ: dict[str, str], tmp_path: Path) -> None:
    lock = local.take_lock(tmp_path)
    assert lock is not None
    local.record(local.Platform("kafka", "127.0.0.1:5001", str(tmp_path), os.getpid(), 1.0), environ)
    os.close(lock)  # as the end of its process does
    assert local.running(environ) == []
    assert resolve(None, None, environ) == Connection("127.0.0.1:9092")


def test_two_flags_are_one_too_many(environ: dict[str, str]) -> None:
    with pytest.raises(BadInput, match="--bootstrap and --context both name a cluster"):
        resolve("a:1", "b", environ)


def test_a_context_that_is_not_there_lists_those_that_are(environ: dict[str, str]) -> None:
    contexts.save(Contexts(None, {"prod": Connection("a:1"), "dev": Connection("b:1")}), environ)
    with pytest.raises(NotFound, match="--context: there is no context 'prd'; there are: dev, prod"):
        resolve(None, "prd", environ)
    environ["MILLSTREAM_CONTEXT"] = "gone"
    with pytest.raises(NotFound, match="MILLSTREAM_CONTEXT: there is no context 'gone'"):
        resolve(None, None, environ)


@pytest.mark.parametrize("address", [",", "host", "host:", "host:0", "host:70000", "host:9092,other"])
def test_a_malformed_address_is_said_at_once(address: str, environ: dict[str, str]) -> None:
    environ["MILLSTREAM_BOOTSTRAP"] = address
    with pytest.raises(BadInput, match="HOST:PORT"):
        resolve(None, None, environ)


def test_the_file_keeps_everything_and_only_its_owner_may_read_it(environ: dict[str, str]) -> None:
    kept = Contexts(
        "prod", {"prod": Connection("a:1,[::1]:2", {"sasl.password": 'se"cret'}), "a.b c": Connection("b:1")}
    )
    contexts.save(kept, environ)
    assert contexts.load(environ) == kept
    assert contexts.path(environ).stat().st_mode & 0o077 == 0
    assert [file.name for file in contexts.path(environ).parent.iterdir()] == ["contexts.toml"]


@pytest.mark.parametrize(
    "text", ["current = ", "contexts = 3", "[contexts.a]\nbootstrap = 1", "[contexts.a.properties]\nx = 1"]
)
def test_a_file_that_is_not_one_is_said(text: str, environ: dict[str, str]) -> None:
    contexts.path(environ).parent.mkdir(parents=True)
    contexts.path(environ).write_text(text)
    with pytest.raises(BadInput, match=r"contexts\.toml is not a file of contexts"):
        contexts.load(environ)


def test_adding_and_removing() -> None:
    one = Contexts(None, {}).with_context("a", Connection("a:1"), use=True)
    two = one.with_context("b", Connection("b:1"), use=False)
    assert two == Contexts("a", {"a": Connection("a:1"), "b": Connection("b:1")})
    assert two.without("b") == one
    assert two.without("a") == Contexts(None, {"b": Connection("b:1")})
