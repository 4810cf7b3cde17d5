"""What all elements have in common: equal by content, frozen, and aware of where they were made."""

import inspect
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from millstream.pipelines import (
    FilterStep,
    Pipeline,
    PythonStep,
    SelectStep,
    TopicSink,
    TopicSource,
    WatermarkStep,
    Window,
)
from millstream.pipelines.description.element import Place

HERE = str(Path(__file__))


def line() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def test_it_knows_the_line_that_made_it() -> None:
    step = FilterStep(where="a")
    assert step.place == Place(HERE, line() - 1)


def test_so_does_one_made_by_a_function_of_the_user() -> None:
    made = [FilterStep(where=condition) for condition in ("a", "b")]
    assert {step.place for step in made} == {Place(HERE, line() - 1)}


def test_a_function_among_the_steps_is_where_it_is_defined() -> None:
    def loud(stream: Any) -> Any:
        return stream

    pipeline = Pipeline(name="p", source=TopicSource(topic="t"), steps=[loud], sinks=[TopicSink(topic="u")])
    (step,) = pipeline.steps
    assert isinstance(step, PythonStep)
    assert step.place == Place(HERE, loud.__code__.co_firstlineno)


def test_equal_by_content_not_by_place() -> None:
    one, other = FilterStep(where="a"), FilterStep(where="a")
    other.at(Place("elsewhere.yaml", 7))
    assert one == other
    assert hash(one) == hash(other)
    assert one != FilterStep(where="b")
    assert len({one, other, FilterStep(where="b")}) == 2


def test_different_kinds_are_different() -> None:
    assert SelectStep(columns=["a"]) != WatermarkStep(column="a", delay=1)
    assert FilterStep(where="a") != "a"


def test_a_hash_despite_mappings() -> None:
    one = TopicSource(topic="t", options={"a": "b"})
    assert hash(one) == hash(TopicSource(topic="t", options={"a": "b"}))
    assert one != TopicSource(topic="t", options={"a": "c"})


def test_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        FilterStep(where="a").where = "b"


def test_written_in_one_way_and_kept_in_another() -> None:
    """Also for mypy, which reads this file: a constructor takes the one, an attribute gives the other."""
    delay: float = WatermarkStep(column="t", delay="10 minutes").delay
    columns: tuple[str, ...] = SelectStep(columns="a").columns
    size: float | None = Window(column="t", size="1h").size
    topics: tuple[str, ...] = TopicSource(topic="clicks").topics
    assert (delay, columns, size, topics) == (600, ("a",), 3600, ("clicks",))


def test_repr_says_what_was_given() -> None:
    assert repr(TopicSink(topic="t", value="json", key="id")) == "TopicSink(topic='t', key='id')"


def test_place_as_text() -> None:
    assert str(Place("a.yaml", 3, "steps[1]")) == "a.yaml:3: steps[1]"
    assert str(Place("a.yaml", 3)) == "a.yaml:3"
