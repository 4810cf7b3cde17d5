"""Code by name: whether it is there, without running it, and what it is."""

import json
import sys
from pathlib import Path

import pytest

from millstream.pipelines import MapStep, PythonStep, StateStep
from millstream.pipelines.description.references import (
    further_parameters,
    load,
    load_file,
    missing,
    reference_of,
    split_reference,
)

CODE = """\
import os
from math import *
if True:
    def inside(stream): ...
try:
    import json as j
except ImportError:
    j = None
else:
    after = 1
a, (b, c) = 1, (2, 3)
typed: int = 5
with open(os.devnull) as f:
    def within(stream): ...
class Class:
    def method(self): ...
def outer(stream, customers, /, views, *, other, more=None, **rest):
    def nested(): ...
raise RuntimeError("this file is not to be run")
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "code.py"
    path.write_text(CODE.replace("from math import *\n", ""))
    return str(path)


@pytest.mark.parametrize("name", ["os", "inside", "j", "after", "a", "b", "c", "typed", "within", "Class", "outer"])
def test_names_at_the_top_of_a_file(file: str, name: str) -> None:
    assert missing(f"{file}:{name}") is None


@pytest.mark.parametrize("name", ["nested", "method", "outr", "stream"])
def test_names_that_are_not(file: str, name: str) -> None:
    why = missing(f"{file}:{name}")
    assert why is not None
    assert why.startswith(f"{file} has no {name}")
    assert ("did you mean `outer`?" in why) == (name == "outr")


def test_a_star_may_bring_anything(tmp_path: Path) -> None:
    (tmp_path / "star.py").write_text(CODE)
    assert missing(f"{tmp_path}/star.py:whatever") is None


def test_files_and_modules_that_are_not_there(tmp_path: Path) -> None:
    assert missing(f"{tmp_path}/no.py:x") == f"there is no file {tmp_path}/no.py"
    assert missing("no.such.module:x") == (
        "there is no module no.such.module; a file beside the pipeline is written no/such/module.py:x"
    )
    (tmp_path / "bad.py").write_text("a\nb b\n")
    assert missing(f"{tmp_path}/bad.py:x") == f"{tmp_path}/bad.py:2: this is not Python: invalid syntax"


def test_modules_that_are_there() -> None:
    assert missing("json:loads") is None
    assert missing("json:lodas") == "json has no lodas; did you mean `loads`?"
    assert missing("math:sqrt") is None  # not written in Python, so nobody knows before it runs


@pytest.mark.parametrize("text", ["clean", ":clean", "a.py:", "a.py:b.c", "a b:c", "a-b:c", "a/b:c"])
def test_what_is_no_reference(text: str) -> None:
    with pytest.raises(ValueError, match=r"write MODULE:NAME or FILE\.py:NAME"):
        split_reference(text)
    with pytest.raises(ValueError, match="write MODULE:NAME"):
        PythonStep(function=text)


def test_parameters(file: str) -> None:
    assert further_parameters(f"{file}:outer") == ("customers", "views", "other", "more")
    assert further_parameters(f"{file}:outer", required=True) == ("customers", "views", "other")
    assert further_parameters(f"{file}:inside") == ()
    assert further_parameters(f"{file}:Class") == ()
    assert further_parameters("json:loads") == ()
    assert further_parameters("nowhere.py:x") == ()
    assert further_parameters(lambda stream, a, b=1, *c, d, **e: None) == ("a", "b", "d")
    assert further_parameters(lambda stream, a, b=1, *c, d, **e: None, required=True) == ("a", "d")
    assert further_parameters(5) == ()


MINE = """\
def clean(stream):
    return "cleaned " + stream


class Count:
    def method(self): ...


local = (lambda: (lambda stream: stream))()
"""


@pytest.fixture
def mine(tmp_path: Path) -> str:
    """A file that nobody can import by name."""
    (tmp_path / "mine.py").write_text(MINE)
    return str(tmp_path / "mine.py")


def test_the_names_of_code(mine: str) -> None:
    module = load_file(Path(mine))
    assert reference_of(json.loads) == "json:loads"
    assert reference_of(module.clean) == f"{mine}:clean"
    assert reference_of(module.Count) == f"{mine}:Count"
    assert reference_of("module:name") == "module:name"
    for nameless in (module.local, module.Count.method, module.Count().method, 5):
        assert reference_of(nameless) is None


def test_code_and_its_name_are_the_same(mine: str) -> None:
    module = load_file(Path(mine))
    assert PythonStep(function=module.clean) == PythonStep(function=f"{mine}:clean")
    assert hash(PythonStep(function=module.clean)) == hash(PythonStep(function=f"{mine}:clean"))
    assert MapStep(function=json.loads, returns="a int") == MapStep(function="json:loads", returns="a int")
    by_class = StateStep(processor=module.Count, by="id", returns="a int")
    assert by_class == StateStep(processor=f"{mine}:Count", by=["id"], returns="a int")
    assert PythonStep(function=module.clean) != PythonStep(function="json:loads")
    assert PythonStep(function=lambda stream: stream) != PythonStep(function=lambda stream: stream)


def test_loading(mine: str) -> None:
    assert load(len) is len
    assert load("json:loads") is json.loads
    assert load(f"{mine}:clean")("rows") == "cleaned rows"
    with pytest.raises(ValueError, match=r"mine\.py has no clear; did you mean `clean`\?"):
        load(f"{mine}:clear")


def test_a_decorated_name_means_the_function(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from millstream.pipelines import *\n"
        "@pipeline('p', source=TopicSource(topic='t'), sinks=[ConsoleSink()])\n"
        "def loud(stream):\n    return stream.upper()\n"
        "plain = Pipeline(name='q', source=TopicSource(topic='t'), sinks=[ConsoleSink()])\n"
    )
    assert load(f"{tmp_path}/mine.py:loud")("rows") == "ROWS"
    with pytest.raises(ValueError, match="the pipeline q does not decorate a function"):
        load(f"{tmp_path}/mine.py:plain")


def test_what_a_file_raises_is_passed_on_and_nothing_stays(file: str) -> None:
    before = (list(sys.path), set(sys.modules))
    with pytest.raises(RuntimeError, match="this file is not to be run"):
        load_file(Path(file))
    assert (sys.path, set(sys.modules)) == before


def test_only_python_can_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("")
    with pytest.raises(ValueError, match="is not a Python file"):
        load_file(tmp_path / "x.txt")


def test_a_module_in_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "parcel"
    package.mkdir()
    (package / "__init__.py").write_text("def top(stream): ...\n")
    (package / "inner.py").write_text("def deep(stream): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        for reference in ("parcel:top", "parcel.inner:deep"):
            assert missing(reference) is None
            assert reference_of(load(reference)) == reference
    finally:
        for name in [name for name in sys.modules if name.startswith("parcel")]:
            del sys.modules[name]


def test_a_package_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "brokenparcel").mkdir()
    (tmp_path / "brokenparcel" / "__init__.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    why = missing("brokenparcel.inner:deep")
    assert why == "brokenparcel.inner cannot be imported: ZeroDivisionError: division by zero"


def test_a_namespace_has_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "emptyspace").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert missing("emptyspace:x") is None
