"""`millstream context`: clusters by name, from the command line."""

import tomllib
from pathlib import Path

import pytest

from support.cli import refused, succeed


@pytest.fixture
def here(tmp_path: Path) -> dict[str, str]:
    return {"MILLSTREAM_CONFIG": str(tmp_path / "contexts.toml"), "XDG_STATE_HOME": str(tmp_path / "state")}


def test_add_use_show_list_and_remove(here: dict[str, str]) -> None:
    assert "no contexts yet" in succeed("context", "list", **here).stdout
    add = ["context", "add", "prod", "--bootstrap", "kafka-1:9092,kafka-2:9092"]
    properties = ["--property", "security.protocol=SASL_SSL", "--property", "sasl.password=a=b"]
    added = succeed(*add, *properties, **here)
    assert "added prod" in added.stdout
    assert succeed("context", "add", "dev", "--bootstrap", "127.0.0.1:9092", "--use", "--json", **here).json == {
        "name": "dev",
        "bootstrap": "127.0.0.1:9092",
        "current": True,
    }
    assert "kafka-1:9092" in succeed("context", "use", "prod", **here).stdout
    rows = succeed("context", "list", "--json", **here).json
    assert [(row["name"], row["current"]) for row in rows] == [("dev", False), ("prod", True)]
    assert rows[1]["properties"] == {"security.protocol": "SASL_SSL", "sasl.password": "(hidden)"}
    table = succeed("context", "list", **here).stdout
    assert [line.split()[:2] for line in table.splitlines()[1:]] == [["dev", "127.0.0.1:9092"], ["*", "prod"]]
    shown = succeed("context", "show", **here).stdout
    assert "kafka-1:9092,kafka-2:9092" in shown
    assert "a=b" not in shown
    assert succeed("context", "show", "dev", "--json", **here).json["bootstrap"] == "127.0.0.1:9092"
    kept = tomllib.loads(Path(here["MILLSTREAM_CONFIG"]).read_text())
    assert kept["contexts"]["prod"]["properties"]["sasl.password"] == "a=b"
    succeed("context", "remove", "prod", **here)
    assert [row["name"] for row in succeed("context", "list", "--json", **here).json] == ["dev"]
    assert succeed("context", "show", "--json", **here).json["name"] is None


def test_the_current_context_is_where_commands_go(here: dict[str, str]) -> None:
    succeed("context", "add", "nowhere", "--bootstrap", "127.0.0.1:1", "--use", **here)
    assert "127.0.0.1:1" in refused(3, "status", **here)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["add", "x", "--bootstrap", "nonsense"], 2, "'nonsense' is not an address: it must be HOST:PORT"),
        (["add", "x", "--bootstrap", "a:1", "--property", "nonsense"], 2, "--property 'nonsense' is not NAME=VALUE"),
        (["add", " ", "--bootstrap", "a:1"], 2, "cannot be empty"),
        (["use", "x"], 4, "there is no context 'x'; there are: none yet"),
        (["show", "x"], 4, "there is no context 'x'"),
        (["remove", "x"], 4, "there is no context 'x'"),
    ],
)
def test_bad_input(here: dict[str, str], arguments: list[str], code: int, said: str) -> None:
    assert said in refused(code, "context", *arguments, **here)
    assert not Path(here["MILLSTREAM_CONFIG"]).exists()


def test_add_needs_an_address(here: dict[str, str]) -> None:
    assert "--bootstrap" in refused(2, "context", "add", "x", **here)
