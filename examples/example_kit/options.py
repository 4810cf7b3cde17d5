"""The options that examples have in common, declared once; an example adds its own."""

from __future__ import annotations

import argparse
from pathlib import Path

ENGINES = ("embedded", "kafka")


def options_parser(
    name: str, doc: str | None, *, seconds: float, rate: float | None = None, of: str = "records", real: bool = False
) -> argparse.ArgumentParser:
    """The parser for an example's arguments.

    `doc`: its docstring. `seconds`: how long it takes unless told otherwise. `rate`: how many `of` a second, if that
    can be said. `real`: whether it can work with real stores in place of embedded ones.
    """
    parser = argparse.ArgumentParser(
        prog=f"millstream example run {name} --",
        description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(name=name, real=False)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--bootstrap", metavar="HOST:PORT", help="use this cluster; topics and groups stay on it")
    where.add_argument(
        "--engine", choices=ENGINES, default="embedded", help="start a cluster for the run (default: embedded)"
    )
    parser.add_argument(
        "--seconds", type=_positive, default=seconds, metavar="N", help=f"how long it runs (default: {seconds:g})"
    )
    if rate is not None:
        parser.add_argument(
            "--rate", type=_positive, default=rate, metavar="N", help=f"{of} a second (default: {rate:,.0f})"
        )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("millstream-examples") / name,
        metavar="DIR",
        help="where plots and reports go (default: %(default)s)",
    )
    if real:
        parser.add_argument("--real", action="store_true", help="start real stores in place of embedded ones")
    parser.add_argument("--json", action="store_true", help="print the report as JSON; what happens goes to stderr")
    return parser


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not more than 0")
    return number
