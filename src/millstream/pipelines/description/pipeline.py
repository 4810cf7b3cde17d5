"""The pipeline itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from millstream.pipelines.description.element import Element, Place
from millstream.pipelines.description.fields import (
    Options,
    Span,
    TableName,
    TopicName,
    Words,
    meant,
    names,
    seconds,
)
from millstream.pipelines.description.references import Decorated
from millstream.pipelines.description.sinks import AnySink
from millstream.pipelines.description.sources import AnySource, Table
from millstream.pipelines.description.step import Step
from millstream.pipelines.description.steps import STEPS, PythonStep

STREAM = "stream"
"""The name under which steps find the rows of the only source, and of the step before."""
NAME_PATTERN = r"[a-zA-Z0-9][a-zA-Z0-9._-]*"


def step_from(given: Any) -> Any:
    """A step out of what stands in a list of steps: a step, a function, or a mapping with the step's name."""
    if isinstance(given, Step):
        return given
    if callable(given):
        step = PythonStep(function=given)
        code = getattr(given, "__code__", None)
        if code is not None:
            step.at(Place(code.co_filename, code.co_firstlineno))
        return step
    name, fields = _named(given)
    model = STEPS[name]
    try:
        return model.model_validate(model.long_form(fields))
    except ValidationError as error:
        raise ValidationError.from_exception_data(
            error.title, [_under(name, line) for line in error.errors()]
        ) from None
    except ValueError as error:
        raise ValidationError.from_exception_data(
            name, [InitErrorDetails(type=_custom("value_error", str(error)), loc=(name,), input=fields)]
        ) from None


def _named(given: Any) -> tuple[str, Any]:
    """The step's name and what stands under it; an error that says which names there are."""
    example = "a step is a name and its fields, as in `- filter: status >= 400`"
    if isinstance(given, str) and given in STEPS:
        given = {given: None}
    if not isinstance(given, Mapping):
        raise _custom("no_step", f"{example}; the names are {', '.join(STEPS)}")
    if len(given) != 1:
        found = " and ".join(f"`{name}`" for name in given) or "none"
        raise _custom("no_step", f"{example}; here are {found} side by side: indent a step's fields under its name")
    ((name, fields),) = given.items()
    if name not in STEPS:
        close = meant(str(name), STEPS) or f"; there are {', '.join(STEPS)}"
        raise _custom("no_step", f"there is no step `{name}`{close}")
    return name, fields


def _custom(kind: str, message: str) -> PydanticCustomError:
    return PydanticCustomError(kind, "{message}", {"message": message})  # a brace in it is not for formatting


def _under(name: str, line: Any) -> InitErrorDetails:
    """An error inside a step, with the step's name before its place."""
    kind: Any = line["type"]
    if kind == "value_error" or kind == "no_kind":
        kind = _custom(kind, line["msg"].removeprefix("Value error, "))
    return InitErrorDetails(type=kind, loc=(name, *line["loc"]), input=line["input"], ctx=line.get("ctx", {}))


class BackPressure(Element):
    """How many records one batch may take."""

    max_records: int | None = Field(default=None, gt=0, description="Never more than this in a batch.")
    target: Span = Field(default=seconds("2s"), description="Adapt the limit so that a batch takes about this long.")
    adaptive: bool = Field(default=True, description="Whether the limit follows the measured speed.")


if TYPE_CHECKING:
    from millstream.pipelines.description.fields import Written

    Steps = Written[Sequence[Step | Callable[..., Any]], tuple[Step, ...]]
    Sinks = Written[Sequence[AnySink], tuple[AnySink, ...]]
else:
    Steps = Annotated[tuple[Annotated[Step, BeforeValidator(step_from)], ...], Words("a list of steps")]
    Sinks = Annotated[tuple[AnySink, ...], Words("a list of sinks")]


class Pipeline(Element, Decorated):
    """Source -> steps -> sinks, and how to run them."""

    name: Annotated[
        str,
        Field(
            alias="pipeline",
            pattern=f"^{NAME_PATTERN}$",
            max_length=200,
            description="Its name, from which those of its consumer group and dead letters follow.",
        ),
    ]
    description: str = Field(default="", description="What it is for.")
    source: Annotated[AnySource | None, Words("a source")] = Field(
        default=None, description="Where the rows come from."
    )
    sources: Annotated[dict[TableName, AnySource], Words("sources by name")] = Field(
        default_factory=dict, description="Several of them; in the steps the first is `stream`."
    )
    tables: Annotated[dict[TableName, Table], Words("tables by name")] = Field(
        default_factory=dict, description="What stands beside the stream, for joins and SQL."
    )
    steps: Steps = Field(default=names(), description="What happens to the rows.")
    sinks: Sinks = Field(min_length=1, description="Where the rows go.")
    mode: Literal["auto", "real-time", "micro-batch", "once"] = Field(
        default="auto",
        description="auto: real-time where Spark allows it. once: all that is there now, in batches, then stop.",
    )
    every: Span = Field(
        default=seconds("0s"), description="Micro-batches start at most this often; 0: as soon as possible."
    )
    real_time_batch: Span = Field(
        default=seconds("60s"),
        ge=5,
        description="How often a real-time query checkpoints; it pauses for about 0.4 s then.",
    )
    output: Literal["auto", "append", "update", "complete"] = Field(
        default="auto", description="Which rows of an aggregate are written."
    )
    dead_letters: TopicName | None = Field(
        default=None, description="The topic of bad records; default: the pipeline's name and `-dead-letters`."
    )
    on_error: Literal["dead-letter", "fail"] = Field(
        default="dead-letter", description="A bad record goes aside, or stops the pipeline."
    )
    back_pressure: BackPressure = Field(default_factory=BackPressure, description="How many records a batch may take.")
    spark: Options = Field(default_factory=dict, description="Settings of the Spark session.")

    @model_validator(mode="after")
    def _complete(self) -> Pipeline:
        if (self.source is None) == (not self.sources):
            raise ValueError("give either `source` or `sources`")
        return self

    @property
    def named_sources(self) -> dict[str, AnySource]:
        """All sources by name; the only one is called `stream`."""
        return dict(self.sources) if self.source is None else {STREAM: self.source}

    @property
    def group(self) -> str:
        """The consumer group that shows its progress."""
        return f"millstream-{self.name}"

    @property
    def dead_letter_topic(self) -> str:
        return self.dead_letters or f"{self.name}-dead-letters"

    @property
    def decorated(self) -> Callable[..., Any]:
        """The function under the decorator, which is the last step."""
        step = self.steps[-1] if self.steps else None
        if isinstance(step, PythonStep) and callable(step.function):
            return step.function
        raise ValueError(f"the pipeline {self.name} does not decorate a function")

    def to_dict(self) -> dict[str, Any]:
        """As it would be written in YAML; PipelineError if code in it has no name."""
        from millstream.pipelines.description.render import as_dict

        return as_dict(self)

    def to_yaml(self) -> str:
        """A file from which `read` makes the same pipeline."""
        from millstream.pipelines.description.render import as_yaml

        return as_yaml(self)
