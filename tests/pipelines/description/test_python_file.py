"""Pipelines in a Python file."""

import sys
from pathlib import Path

import pytest

from millstream.pipelines import Pipeline, PipelineErrors, PythonStep, TopicSource
from millstream.pipelines.description.element import Place
from support.descriptions import mistakes, read_text

GOOD = """\
    from __future__ import annotations

    from dataclasses import dataclass

    from beside import TOPIC
    from millstream.pipelines import ConsoleSink, FilterStep, LookupStep, Pipeline, TopicSource, pipeline


    @dataclass
    class Settings:
        topic: str


    @pipeline(
        "second-by-name",
        source=TopicSource(topic=TOPIC),
        steps=[LookupStep(name="l", on="ip", type="file", path="ranges.csv")],
        sinks=[ConsoleSink()],
    )
    def loud(stream):
        return stream


    quiet = Pipeline(name="a-first-by-name", source=TopicSource(topic="b"), sinks=[ConsoleSink()])
    again = quiet
    """


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(sys.modules, "beside", None)
    monkeypatch.delitem(sys.modules, "beside")
    (tmp_path / "beside.py").write_text('TOPIC = "clicks"\n')
    (tmp_path / "ranges.csv").write_text("range,fraud\n")
    return tmp_path


def test_all_pipelines_in_their_order(folder: Path) -> None:
    pipelines = read_text(folder, GOOD, name="p.py")
    assert [pipeline.name for pipeline in pipelines] == ["second-by-name", "a-first-by-name"]
    assert pipelines[0].source == TopicSource(topic="clicks")


def test_places_and_paths(folder: Path) -> None:
    loud, quiet = read_text(folder, GOOD, name="p.py")
    file = str(folder / "p.py")
    assert loud.place == Place(file, 14)
    assert quiet.place == Place(file, 24)
    assert [step.place for step in loud.steps] == [Place(file, 17), Place(file, 14)]
    assert loud.steps[0].content()["path"] == str(folder / "ranges.csv")


def test_nothing_is_left_behind(folder: Path) -> None:
    before = list(sys.path)
    loud, _ = read_text(folder, GOOD, name="p.py")
    assert sys.path == before
    step = loud.steps[-1]
    assert isinstance(step, PythonStep)
    assert callable(step.function)
    assert step.function.__module__ not in sys.modules  # so that it goes to the workers by value


AROUND = "from millstream.pipelines import *\n\n"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("x = 1 +\n", "3: this is not Python (column 8): invalid syntax"),
        ("x = {}['a']\n", "3: KeyError: 'a'"),
        ("def f():\n    return 1 / 0\nx = f()\n", "4: ZeroDivisionError: division by zero"),
        ("import no_such_module\n", "3: ModuleNotFoundError: No module named 'no_such_module'"),
        ("x = 1\n", "1: there is no Pipeline at the top level of this file"),
        (
            "s = TopicSource(\n    topic='t',\n    valeu='text')\n",
            "3: TopicSource.valeu: there is no such field; did you mean",
        ),
        ("s = TopicSource(topic='a b')\n", "3: TopicSource.topic[0]: 'a b' cannot be a topic's name"),
        ("s = FilterStep()\n", "3: FilterStep.where: this field must be there: A SQL condition"),
        (
            "p = Pipeline(name='p', source=TopicSource(topic='t'), sinks=[5])\n",
            "3: Pipeline.sinks[0]: 5 is not possible",
        ),
        (
            "p = Pipeline(name='p', source=TopicSource(topic='t'), sinks=[])\n",
            "3: Pipeline.sinks: at least one must be there",
        ),
        ("w = Window(column='t', size='long')\n", "3: Window.size: 'long' is not a length of time"),
        (
            "p = Pipeline(name='p', source=TopicSource(topic='t'), steps=[{'filtre': 'a'}], sinks=[ConsoleSink()])\n",
            "3: Pipeline.steps[0]: there is no step `filtre`; did you mean `filter`?",
        ),
        (
            "p = Pipeline(name='p', source=TopicSource(topic='t'), sinks=[ConsoleSink()], steps=[\n"
            "    JoinStep(with_='customers', on='id')])\n",
            "4: steps[0].join.with: there is no source or table `customers`; give it under `tables` or `sources`",
        ),
    ],
)
def test_mistakes(tmp_path: Path, text: str, wrong: str) -> None:
    found = mistakes(tmp_path, AROUND + text, name="p.py")
    assert len(found) == 1
    assert found[0].startswith(wrong)


def test_several_mistakes_of_an_element(tmp_path: Path) -> None:
    found = mistakes(tmp_path, AROUND + "s = TopicSink(topc='a', value='xml')\n", name="p.py")
    assert [line.partition(": ")[2].partition(":")[0] for line in found] == [
        "TopicSink.topic",
        "TopicSink.value",
        "TopicSink.topc",
    ]


def test_mistakes_of_several_pipelines(tmp_path: Path) -> None:
    one = "{} = Pipeline(name='{}', source=TopicSource(topic='t'), steps=[SqlStep(sql='')], sinks=[ConsoleSink()])\n"
    found = mistakes(tmp_path, AROUND + one.format("a", "a") + one.format("b", "b"), name="p.py")
    assert [line.partition(":")[0] for line in found] == ["3", "4"]


def test_a_model_of_the_users_own_keeps_its_message(tmp_path: Path) -> None:
    text = "from pydantic import BaseModel\n\n\nclass Mine(BaseModel):\n    a: int\n\n\nm = Mine(a='x')\n"
    (found,) = mistakes(tmp_path, text, name="p.py")
    assert found.startswith("8: 1 validation error for Mine")


def test_the_decorated_name_is_the_pipeline(folder: Path) -> None:
    (loud, _) = read_text(folder, GOOD, name="p.py")
    assert isinstance(loud, Pipeline)
    assert loud.decorated("rows") == "rows"


def test_names_stand_once(tmp_path: Path) -> None:
    one = "{} = Pipeline(name='p', source=TopicSource(topic='t'), sinks=[ConsoleSink()])\n"
    with pytest.raises(PipelineErrors, match="a pipeline of the name p is already in line 3"):
        read_text(tmp_path, AROUND + one.format("a") + one.format("b"), name="p.py")
