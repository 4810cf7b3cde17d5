"""`millstream graduate` between two Millstream servers: what it says and what it refuses."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from millstream.testing import running_server
from support import graduation as data
from support.cli import refused, run, succeed


@pytest.fixture(scope="module")
def source() -> Iterator[str]:
    with running_server() as server:
        address = server.bootstrap_servers
        data.make_topic(address, "orders", 3, retention_ms="864000000")
        data.fill(address, "orders", 300, codec="zstd", partitions=3)
        data.make_topic(address, "payments")
        data.transact(address, "payments", "t", [b"1"], commit=False)
        data.commit(address, "billing", {("orders", 0): 50})
        yield address


@pytest.fixture
def target() -> Iterator[str]:
    with running_server() as server:
        yield server.bootstrap_servers


@pytest.fixture
def move(source: str, target: str, tmp_path: Path) -> list[str]:
    return ["graduate", "--bootstrap", source, "--to", target, "--state", str(tmp_path / "state.json")]


@pytest.mark.parametrize("columns", [80, 140])
def test_the_report_fits_the_terminal(move: list[str], columns: int) -> None:
    text = succeed(*move, columns=columns).stdout
    assert max(map(len, text.splitlines())) <= columns
    assert [line.split() for line in text.splitlines() if line.startswith("orders")] == [
        ["orders", "3", "300", "300", *text.split("orders")[1].split()[3:5], "zstd", "create"]
    ]
    assert "orders: retention.ms=864000000" in text
    assert "billing  Empty          1  move" in text
    assert "Nothing was moved yet: --execute does it." in text


def test_the_plan_changes_nothing(move: list[str], target: str, tmp_path: Path) -> None:
    succeed(*move)
    assert "orders" not in data.topics(target)
    assert list(tmp_path.iterdir()) == []


def test_the_result_names_every_partition(move: list[str]) -> None:
    text = succeed(*move, "--execute").stdout
    for partition in range(3):
        (line,) = [line for line in text.splitlines() if line.startswith(f"orders-{partition} ")]
        assert line.split()[1:4] == ["100", "0", "99"]
        assert line.endswith("equal")
    assert "group billing: 1 position moved and verified" in text
    assert "Moved 2 topics with 300 records" in text
    assert "Nothing was changed at the source." in text


def test_a_record_that_differs_is_an_error_that_names_the_partition(
    move: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import millstream.cluster.graduation.copying as copying

    monkeypatch.setattr(copying, "portable_timestamp", lambda timestamp: timestamp + 1)
    result = run(*move, "--topic", "orders", "--execute")
    assert result.exit_code == 1
    assert "the target does not hold what the source holds: orders-0 (checksum" in result.stderr


def test_two_runs_at_once_are_kept_apart(move: list[str], tmp_path: Path) -> None:
    from millstream.cluster.graduation.state import State

    with State(tmp_path / "state.json", "a", "b").locked():
        result = run(*move, "--execute")
    assert result.exit_code == 1
    assert "another `millstream graduate` is at work" in result.stderr


def test_configs_unknown_to_the_target_can_be_left_behind(
    move: list[str], monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    import millstream.cluster.graduation.preflight as preflight

    real = preflight._topic_configs
    odd = {"odd.config": {"value": "1", "config_source": "DYNAMIC_TOPIC_CONFIG"}}
    monkeypatch.setattr(
        preflight, "_topic_configs", lambda *args: {name: {**found, **odd} for name, found in real(*args).items()}
    )
    result = run(*move, "--topic", "orders")
    assert result.exit_code == 1
    assert "topic orders has the config odd.config, which the target does not know" in result.stdout
    succeed(*move, "--topic", "orders", "--skip-config", "odd.config")


def test_records_too_big_for_the_target(tmp_path: Path, source: str) -> None:
    with running_server({"socket.request.max.bytes": "500000"}) as small:
        result = run("graduate", "--from", source, "--to", small.bootstrap_servers, "--state", str(tmp_path / "s"))
    assert result.exit_code == 1
    assert "the target takes no request over 500000 bytes" in " ".join(result.stdout.split())


def test_bad_input(move: list[str], source: str, tmp_path: Path) -> None:
    assert "did you mean orders?" in refused(4, *move, "--topic", "oders")
    assert "--placeholders: 'x' is neither" in refused(2, *move, "--placeholders", "x")
    assert "is the same cluster as the source" in refused(2, "graduate", "--from", source, "--to", source)
    assert "--to: there is no context 'prod'" in refused(4, "graduate", "--from", source, "--to", "prod")
    assert "no broker answers at 127.0.0.1:1" in refused(3, "graduate", "--from", source, "--to", "127.0.0.1:1")
    assert "give one of them" in refused(2, *move, "--from", source)
    state = tmp_path / "state.json"
    state.write_text("{}")
    assert "is not the state of a move" in refused(2, *move)
    state.write_text('{"version": 1, "source": "x", "target": "y", "topics": {}, "groups": {}}')
    assert "belongs to a move from cluster x to y" in refused(2, *move)
