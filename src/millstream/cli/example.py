"""`millstream example`: the applications that show the platform at work, listed and run.

They are the folders with an `example.py` in the repository's `examples`, or in the wheel's copy of it. The first line
of the module's docstring says what an example shows; `main(argv)` runs it. Nothing is imported to list them.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import signal
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from millstream.cli.interrupts import INTERRUPTED
from millstream.cli.options import Json, command_app
from millstream.cli.output import Column, fail, show_rows, warn

PACKAGE = Path(__file__).parent.parent
PLACES = (PACKAGE / "examples", PACKAGE.parent.parent / "examples")
"""In the wheel, and in the repository."""

app = command_app("Applications that show the platform at work.")


@app.command("list")
def list_(json: Json = False) -> None:
    """List the examples."""
    rows = [{"name": name, "shows": _shows(file), "folder": str(file.parent)} for name, file in _examples().items()]
    show_rows(rows, [Column("name", "EXAMPLE", whole=True), Column("shows", "SHOWS")], json=json)


@app.command("run", context_settings={"ignore_unknown_options": True})
def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The example.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- ARGS...", help="What the example is told; `-- --help` shows what it understands."),
    ] = None,
    json: Json = False,
) -> None:
    """Run an example; it brings its own cluster and stops by itself."""
    examples = _examples()
    name = name.replace("_", "-")
    if name not in examples:
        near = difflib.get_close_matches(name, examples, n=1)
        meant = f"; did you mean {near[0]!r}?" if near else f"; there are: {', '.join(examples)}"
        fail(f"there is no example {name!r}{meant}", 4)
    file = examples[name]
    sys.path.insert(0, str(file.parent.parent))
    argv = [*(["--json"] if json else []), *(arguments or [])]
    try:
        from example_kit import ExampleError

        module = import_module(f"{file.parent.name}.example")
    except ModuleNotFoundError as error:
        fail(f"{name} needs {error.name}: pip install 'millstream[examples]' brings it")
    with _terminated_like_ctrl_c():
        try:
            raise typer.Exit(module.main(argv))
        except ModuleNotFoundError as error:
            fail(f"{name} needs {error.name}: pip install 'millstream[examples]' brings it")
        except ExampleError as error:
            fail(str(error), error.exit_code)
        except KeyboardInterrupt:
            warn("stopped")
            raise typer.Exit(INTERRUPTED) from None


def _examples() -> dict[str, Path]:
    """Name -> its `example.py`."""
    files = [file for place in PLACES for file in sorted(place.glob("*/example.py"))]
    if not files:
        fail("the examples are not part of this installation")
    return {file.parent.name.replace("_", "-"): file for file in files}


def _shows(file: Path) -> str:
    """The docstring's first line."""
    doc = ast.get_docstring(ast.parse(file.read_text())) or ""
    return doc.partition("\n")[0]


@contextlib.contextmanager
def _terminated_like_ctrl_c() -> Iterator[None]:
    """SIGTERM stops an example in order too, with all that it has started."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
