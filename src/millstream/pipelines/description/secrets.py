"""What must not be printed: passwords, in fields, in mappings of options and inside URLs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"
_NAMES = re.compile(r"password|passwd|secret|token|credential|jaas|(api|access|private)[._-]?key", re.IGNORECASE)
_IN_URL = re.compile(r"(?<=://)([^/\s:@]*):[^/\s]*@")
_IN_QUERY = re.compile(r"([?&;](?:password|passwd|pwd|secret|token)=)[^&;\s]+", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Whether a field or option of this name holds a secret."""
    return _NAMES.search(name) is not None


def without_secrets(value: Any, name: str = "") -> Any:
    """The value for people: passwords replaced, whatever holds them."""
    if isinstance(value, str):
        return (
            HIDDEN if value and is_secret(name) else _IN_QUERY.sub(rf"\1{HIDDEN}", _IN_URL.sub(rf"\1:{HIDDEN}@", value))
        )
    if isinstance(value, Mapping):
        return {key: without_secrets(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(without_secrets(item, name) for item in value)
    return value
