"""The ladder: who may import whom. Read from the source, with no list of exceptions."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "millstream"
LADDER = {
    "jvm": set(),
    "wire": set(),
    "log": {"wire"},
    "broker": {"wire", "log"},
    "server": {"wire", "log", "broker"},
    "engines": {"wire", "log", "broker", "server", "jvm"},
    "cluster": set(),
    "stores": {"jvm", "engines"},
    "pipelines": {"jvm", "cluster"},
    "testing": {"wire", "log", "broker", "server"},
    "cli": {"wire", "log", "broker", "server", "engines", "cluster", "jvm", "stores", "pipelines"},
}
MODULES = sorted(SOURCE.rglob("*.py"))


def package_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).parts
    return parts[0] if len(parts) > 1 else ""


def imported_packages(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "millstream" and len(parts) > 1 and parts[1] in LADDER:
                found.add(parts[1])
    return found


def test_every_package_has_its_place_on_the_ladder() -> None:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert packages == set(LADDER)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_down_the_ladder_only(path: Path) -> None:
    package = package_of(path)
    if package:
        assert imported_packages(path) <= LADDER[package] | {package}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_module_opens_with_its_contract(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), f"{path} has no docstring"
