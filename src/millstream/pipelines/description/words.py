"""What pydantic finds wrong, in people's words, and what a field takes: `a whole number above 0`.

The same words stand in the messages and in the reference of the docs.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from millstream.pipelines.description.fields import Words, meant
from millstream.pipelines.description.secrets import is_secret, without_secrets

_PLAIN: dict[Any, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "`true` or `false`",
    type(None): "nothing",
    Any: "a value",
    type: "a class",
}


def field_words(field: FieldInfo) -> str:
    """What a field takes."""
    return type_words(field.annotation, field.metadata)


def type_words(kind: Any, metadata: Iterable[Any] = ()) -> str:
    """What a value of this type is called."""
    metadata = list(metadata)
    for item in metadata:
        if isinstance(item, Words):
            return item.text
    bounds = "".join(
        f" above {item.gt}" if isinstance(item, Gt) else f" from {item.ge} on"
        for item in metadata
        if isinstance(item, Gt | Ge)
    )
    return _type_words(kind) + bounds


def _type_words(kind: Any) -> str:
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return type_words(arguments[0], arguments[1:])
    if origin is Literal:
        return either(f"`{choice}`" for choice in arguments)
    if origin in (Union, types.UnionType):
        return either(dict.fromkeys(type_words(part) for part in arguments if part is not type(None)))
    if origin is dict:
        return f"{plural(arguments[1])} by name"
    if origin is tuple:
        return f"a list of {plural(arguments[0])}"
    if origin is Callable or kind is Callable:
        return "a function"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return "a mapping of its fields"
    return str(kind)


def plural(kind: Any) -> str:
    """`texts`, `SQL`: several of them."""
    words = type_words(kind).removeprefix("a ")
    return words if words == "SQL" or " " in words else f"{words}s"


def either(choices: Iterable[str]) -> str:
    """`a, b or c`."""
    *others, last = choices
    return f"{', '.join(others)} or {last}" if others else last


def given_words(value: Any) -> str:
    """What stands where something else should."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, Mapping):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, int | float):
        return str(value)
    text = str(without_secrets(value))
    return repr(text if len(text) <= 60 else f"{text[:57]}…")


def errors_of(error: ValidationError) -> list[Any]:
    """What pydantic found; without lists that are too short only because it does not count their broken items."""
    return [line for line in error.errors() if line["type"] != "too_short" or not line["input"]]


def message(kind: str, error: Mapping[str, Any], field: FieldInfo | None, wanted: str, names: Iterable[str]) -> str:
    """One of pydantic's errors as a sentence: the field it is about, what it takes, and the names of its neighbours."""
    context: Mapping[str, Any] = error.get("ctx", {})
    name = str(error["loc"][-1]) if error["loc"] else ""
    given = "what is given" if is_secret(name) else given_words(error["input"])
    match kind:
        case "missing":
            meaning = f": {field.description}" if field is not None and field.description else ""
            return f"this field must be there{meaning}".rstrip(".")
        case "extra_forbidden":
            known = list(names)
            others = f"; there are {', '.join(known)}"
            return f"there is no such field{meant(name, known) or others}"
        case "literal_error":
            choices = _choices(field)
            close = meant(str(error["input"]), choices)
            return f"{given} is not possible: write {either(f'`{choice}`' for choice in choices)}{close}"
        case "no_kind":
            return _no_kind(error)
        case "string_pattern_mismatch":
            return f"{given} is not possible: letters, digits, `.`, `_` and `-`, with a letter or digit first"
        case "string_too_long":
            return f"this is too long: at most {context['max_length']} characters"
        case "too_short":
            return "at least one must be there"
        case "greater_than" | "greater_than_equal":
            return f"{given} is too small: it must be {_bound(context)}"
        case "value_error" | "no_step" | "assertion_error":
            return str(error["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
        case _:
            return f"{given} is not possible: this must be {wanted}" if wanted else str(error["msg"])


def _choices(field: FieldInfo | None) -> list[str]:
    """The words of a field of a few words."""
    if field is None:
        return []
    kinds = [field.annotation, *get_args(field.annotation)]
    return [str(choice) for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)]


def _bound(context: Mapping[str, Any]) -> str:
    return f"above {context['gt']:g}" if "gt" in context else f"at least {context['ge']:g}"


def _no_kind(error: Mapping[str, Any]) -> str:
    text = str(error["msg"])
    if not isinstance(error["input"], Mapping):
        return f"{given_words(error['input'])} is not possible: give its fields, as {{topic: …}}"
    telling = text.removesuffix(" must be there").rpartition("fields ")[2].split(", ")
    close = (meant(str(name), telling) for name in error["input"])
    return text + next(filter(None, close), "")
