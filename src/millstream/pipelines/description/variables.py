"""`${NAME}` and `${NAME:-default}` in the texts of a pipeline's file: the environment's values. `$${` is a plain `${`.

A value from the environment is always a text, never YAML: it can neither add fields nor turn a password of digits into
a number. Fields that want a number or a boolean read it from the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from millstream.pipelines.description.fields import meant

FORMS = "${NAME} or ${NAME:-default}"
_VARIABLE = re.compile(r"\$\$\{|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})?")


class VariableError(Exception):
    """A variable that is not set, or is not written right."""


def has_variables(text: str) -> bool:
    return "${" in text


def replaced(text: str, environ: Mapping[str, str]) -> str:
    """The text with the environment's values; VariableError says which one is missing."""

    def value(match: re.Match[str]) -> str:
        if match[0] == "$${":
            return "${"
        if match[1] is None:
            raise VariableError(f"`${{` is not followed by a name and `}}`: write {FORMS}, or $${{ for a plain ${{")
        name, default = match[1], match[2]
        found = environ.get(name)
        if default is not None and not found:
            return default
        if found is None:
            close = meant(name, environ)
            raise VariableError(f"{name} is not set in the environment{close} (`${{{name}:-…}}` would give a default)")
        return found

    return _VARIABLE.sub(value, text)


def escaped(text: str) -> str:
    """The text so that `replaced` gives it back."""
    return text.replace("${", "$${")
