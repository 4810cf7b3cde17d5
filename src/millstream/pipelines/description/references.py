"""Python functions and classes by name: `module:function`, or `file.py:function` with a path.

A description may hold the function itself or its reference; both mean the same and are equal. Whether a reference leads
somewhere is found out without running it (`missing`; only the packages around a module are imported); `load` runs it.

A file that is loaded is not left in `sys.modules`: what Spark's workers need of it is then sent to them by value, for
they could not import it by name. While it runs, its folder is on `sys.path`, as it would be for `python file.py`.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator

from millstream.pipelines.description.fields import Words, absolute, meant


class Decorated:
    """What stands under the name of a function that was decorated: a pipeline. The function is what is meant by it."""

    @property
    def decorated(self) -> Callable[..., Any]:
        raise NotImplementedError


_LOADED: dict[str, Path] = {}
"""The modules that were made of files, and are not in `sys.modules`."""
FORM = "write MODULE:NAME or FILE.py:NAME"


def split_reference(reference: str) -> tuple[str, str]:
    """The module or file, and the name in it; ValueError says what a reference looks like."""
    where, colon, name = reference.rpartition(":")
    if not (colon and where and name.isidentifier()):
        raise ValueError(f"{reference!r} does not name a function: {FORM}")
    if not where.endswith(".py") and not all(part.isidentifier() for part in where.split(".")):
        raise ValueError(f"{where!r} is neither a module nor a .py file: {FORM}")
    return where, name


def reference_of(target: Any) -> str | None:
    """By what name another process finds a function or class; None for what has none, as a lambda."""
    if isinstance(target, str):
        return target
    name, module = getattr(target, "__qualname__", ""), getattr(target, "__module__", None)
    if not (isinstance(name, str) and name.isidentifier() and isinstance(module, str)):
        return None
    file = _LOADED.get(module)
    if file is None:
        try:
            file = Path(inspect.getfile(target)).absolute()
        except (TypeError, OSError):
            return f"{module}:{name}" if module in sys.builtin_module_names else None
    if module != "__main__" and _is_importable(module, file):
        return f"{module}:{name}"
    return f"{file}:{name}" if file.suffix == ".py" else None


def _is_importable(module: str, file: Path) -> bool:
    """Whether a module of this name would be found by `import`, in this file."""
    depth = module.count(".") + (1 if file.name == "__init__.py" else 0)
    if depth >= len(file.parents):
        return False
    root = file.parents[depth]
    names = file.relative_to(root).with_suffix("").parts
    return ".".join(names).removesuffix(".__init__") == module and any(
        Path(entry or ".").absolute() == root for entry in sys.path
    )


def missing(reference: str) -> str | None:
    """Why a reference leads nowhere, found without running its code; None if it leads somewhere."""
    where, name = split_reference(reference)
    if where.endswith(".py"):
        if not Path(where).is_file():
            return f"there is no file {where}"
        file = Path(where)
    else:
        try:
            found = _module_file(where)
        except Exception as error:  # of a package around it
            return f"{where} cannot be imported: {type(error).__name__}: {error}"
        if found is None:
            return (
                f"there is no module {where}; a file beside the pipeline is written {where.replace('.', '/')}.py:{name}"
            )
        file = found
    if file.suffix != ".py":
        return None  # an extension module: only running it would tell
    try:
        top = dict(_top_level(ast.parse(file.read_bytes(), str(file)).body))
    except SyntaxError as error:
        return f"{file}:{error.lineno}: this is not Python: {error.msg}"
    return None if name in top or "*" in top else f"{where} has no {name}{meant(name, top)}"


def further_parameters(target: Any, required: bool = False) -> tuple[str, ...]:
    """The names of a function's parameters after the first, sources and tables; `required`: those with no default.

    A reference to a file is read, not run; what cannot be known without running it has none.
    """
    if isinstance(target, str):
        where, name = split_reference(target)
        if not where.endswith(".py") or missing(target) is not None:
            return ()
        node = dict(_top_level(ast.parse(Path(where).read_bytes()).body)).get(name)
        if not isinstance(node, ast.FunctionDef):
            return ()
        return _written_parameters(node.args, required)
    try:
        parameters = list(inspect.signature(target).parameters.values())[1:]
    except (TypeError, ValueError):
        return ()
    named = [part for part in parameters if part.kind not in (part.VAR_POSITIONAL, part.VAR_KEYWORD)]
    return tuple(part.name for part in named if not required or part.default is part.empty)


def _written_parameters(arguments: ast.arguments, required: bool) -> tuple[str, ...]:
    positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    keyword = [argument.arg for argument in arguments.kwonlyargs]
    if required:
        positional = positional[: len(positional) - len(arguments.defaults)] or positional[:1]
        keyword = [name for name, default in zip(keyword, arguments.kw_defaults, strict=True) if default is None]
    return (*positional[1:], *keyword)


def _module_file(module: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(module)
    except (ModuleNotFoundError, ValueError):
        return None
    if spec is None:
        return None
    return Path(spec.origin) if spec.origin else Path("namespace")


def _top_level(statements: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """The names that a module's statements give, also those under `if`, `try` and the like."""
    for node in statements:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (((alias.asname or alias.name).partition(".")[0], node) for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for part in (part for target in targets for part in ast.walk(target)):
                if isinstance(part, ast.Name):
                    yield part.id, node
        else:
            for field in ("body", "orelse", "finalbody", "handlers"):
                inner = getattr(node, field, [])
                yield from _top_level(inner)


def load(target: Any) -> Any:
    """The function or class itself. What its module raises is passed on; ValueError if the name is not in it."""
    if not isinstance(target, str):
        return target
    where, name = split_reference(target)
    module = load_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    if not hasattr(module, name):
        raise ValueError(f"{where} has no {name}{meant(name, vars(module))}")
    found = getattr(module, name)
    return found.decorated if isinstance(found, Decorated) else found


def load_file(path: Path) -> ModuleType:
    """Runs a Python file as a module of its own name."""
    path = path.absolute()
    spec = importlib.util.spec_from_file_location(f"_pipeline_{path.stem}_{zlib.crc32(bytes(path)):08x}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    _LOADED[module.__name__] = path
    with _imports_beside(path.parent):
        sys.modules[module.__name__] = module  # dataclasses and the like look their module up while it runs
        try:
            spec.loader.exec_module(module)
        finally:
            del sys.modules[module.__name__]
    return module


@contextmanager
def _imports_beside(folder: Path) -> Iterator[None]:
    entry = str(folder.absolute())
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        sys.path.remove(entry)


def _checked(target: Any) -> Any:
    if isinstance(target, str):
        where, name = split_reference(target)
        return f"{absolute(where)}:{name}" if where.endswith(".py") else target
    return target


if TYPE_CHECKING:
    Function = str | Callable[..., Any]
    Class = str | type
else:
    Function = Annotated[str | Callable[..., Any], AfterValidator(_checked), Words("a function, or where it is")]
    Class = Annotated[str | type, AfterValidator(_checked), Words("a class, or where it is")]
