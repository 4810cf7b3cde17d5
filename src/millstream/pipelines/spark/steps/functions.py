"""Python of a user inside a pipeline: loaded once, and sent to Spark's workers by value.

Workers can import what is installed, and nothing else: not the pipeline's file and not the files beside it. So every
module that was loaded from outside the installed packages is marked to be pickled whole, with what it says.
"""

from __future__ import annotations

import functools
import sys
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark import cloudpickle

from millstream.pipelines.description import references
from millstream.pipelines.description.element import Place
from millstream.pipelines.errors import PipelineError

_INSTALLED = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_OURS = __name__.partition(".")[0]


def load(target: Any, place: Place | None) -> Any:
    """The function or class, fit to be sent to workers; PipelineError if it cannot be had."""
    try:
        found = _loaded(target, _changed(target)) if isinstance(target, str) else target
    except Exception as error:
        raise PipelineError(f"{target} cannot be loaded: {type(error).__name__}: {error}", place) from error
    _send_by_value(getattr(found, "__module__", None))
    return found


def name_of(target: Any) -> str:
    """What a function is called in messages."""
    if isinstance(target, str):
        return target.rpartition(":")[2]
    return str(getattr(target, "__name__", type(target).__name__))


@functools.lru_cache(maxsize=256)
def _loaded(reference: str, _: float) -> Any:
    before = set(sys.modules)
    found = references.load(reference)
    for name in set(sys.modules) - before:  # what a file imports from beside itself
        _send_by_value(name)
    return found


def _changed(reference: str) -> float:
    """When a file was changed last, so that a pipeline that is started again gets what is in it now."""
    where = references.split_reference(reference)[0]
    return Path(where).stat().st_mtime if where.endswith(".py") and Path(where).exists() else 0.0


def _send_by_value(name: str | None) -> None:
    """A module and the packages it is in, as far as only this process has them."""
    parts = (name or "").split(".")
    for length in range(1, len(parts) + 1):
        module = sys.modules.get(".".join(parts[:length]))
        if module is not None and module.__name__ in sys.modules and _is_local(module):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # PySpark's copy


def _is_local(module: ModuleType) -> bool:
    """Whether a module lies outside the installed packages."""
    if module.__name__ == "__main__" or module.__name__.partition(".")[0] == _OURS:
        return False
    where = module.__file__ if getattr(module, "__file__", None) else next(iter(getattr(module, "__path__", ())), None)
    return where is not None and not where.startswith(_INSTALLED)
