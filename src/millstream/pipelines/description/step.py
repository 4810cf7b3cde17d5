"""What all steps have: the short form, and code of the user's by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, get_origin

from millstream.pipelines.description.element import Element
from millstream.pipelines.description.references import reference_of


class Step(Element):
    """What all steps have."""

    short: ClassVar[str | None] = None
    """The field that a step written with one plain value means."""

    @classmethod
    def is_short(cls, given: Any) -> bool:
        """Whether this, found under the step's name, is the short form and not the step's fields."""
        if not isinstance(given, Mapping):
            return True
        if cls.short is None or not _is_mapping(cls, cls.short):
            return False
        return not (list(given) == [cls.short] and isinstance(given[cls.short], Mapping))

    @classmethod
    def long_form(cls, given: Any) -> Any:
        """The step's fields; ValueError if they must be written out."""
        if not cls.is_short(given):
            return given
        if cls.short is None or given is None:
            fields = [field.alias or name for name, field in cls.model_fields.items() if field.is_required()]
            raise ValueError(f"its fields must be there: {{{', '.join(f'{name}: …' for name in fields)}}}")
        return {cls.short: given}


def _is_mapping(model: type[Element], field: str) -> bool:
    return get_origin(model.model_fields[field].annotation) is dict


class CodeStep(Step):
    """A step with code of the user's: the code itself, or where it is; both are the same."""

    code: ClassVar[str]

    def content(self) -> dict[str, Any]:
        target = getattr(self, self.code)
        return {**self.__dict__, self.code: reference_of(target) or target}
