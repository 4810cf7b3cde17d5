"""`@pipeline`."""

from typing import Any, get_type_hints

import pytest
from pydantic import ValidationError

from millstream.pipelines import FilterStep, Pipeline, PythonStep, Table, TopicSink, TopicSource, check, pipeline
from millstream.pipelines.description.decorator import PipelineFields


@pipeline(
    "loud",
    description="Upper case",
    source=TopicSource(topic="words", value="text"),
    tables={"names": Table(topic="names")},
    steps=[FilterStep(where="value IS NOT NULL")],
    sinks=[TopicSink(topic="loud", value="text")],
    mode="micro-batch",
    every="5s",
)
def loud(stream: Any, names: Any) -> Any:
    return (stream, names)


def test_the_name_is_the_pipeline_and_the_function_its_last_step() -> None:
    assert isinstance(loud, Pipeline)
    assert (loud.name, loud.description, loud.mode, loud.every) == ("loud", "Upper case", "micro-batch", 5)
    assert loud.steps[0] == FilterStep(where="value IS NOT NULL")
    step = loud.steps[1]
    assert isinstance(step, PythonStep)
    assert callable(step.function)
    assert step.function("rows", "table") == ("rows", "table")
    check(loud)


def test_it_equals_the_same_without_a_decorator() -> None:
    assert loud == Pipeline(
        name="loud",
        description="Upper case",
        source=TopicSource(topic="words", value="text"),
        tables={"names": Table(topic="names")},
        steps=[FilterStep(where="value IS NOT NULL"), PythonStep(function=loud.decorated)],
        sinks=[TopicSink(topic="loud", value="text")],
        mode="micro-batch",
        every=5,
    )


def test_it_takes_all_that_a_pipeline_has() -> None:
    assert list(get_type_hints(PipelineFields)) == [name for name in Pipeline.model_fields if name != "name"]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValidationError, match="give either `source` or `sources`"):
        pipeline("p", sinks=[TopicSink(topic="t")])(lambda stream: stream)
    with pytest.raises(ValidationError, match="sink"):
        pipeline("p", source=TopicSource(topic="t"), sink=TopicSink(topic="t"))(lambda stream: stream)  # type: ignore[call-arg]
