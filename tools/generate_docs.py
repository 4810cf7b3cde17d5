"""Writes the pages of `docs/` that are tables of what the code declares: APIs, settings, commands and pipelines.

    python tools/generate_docs.py

A test compares the result with what is checked in, so that no API, no setting, no command, no option and no part of a
pipeline can go undocumented. Pipelines are in `pipeline_docs`.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

import pipeline_docs
from millstream.broker.apis import load_all
from millstream.broker.apis.registry import APIS, Api
from millstream.broker.configs.catalogue import BROKER_CONFIGS, GROUP_CONFIGS, TOPIC_CONFIGS
from millstream.broker.configs.declaration import Config
from millstream.cli import app

DEPARTURE = re.compile(r"Departures? from Apache Kafka: (.*?)(?=\n\n|\Z)", re.S)
DOCS = Path(__file__).parent.parent / "docs"


def apis_page() -> str:
    load_all()
    rows = [row(api) for api in ordered()]
    notes = [f"- **{api.name}**: {departure(api)}" for api in ordered() if departure(api)]
    return "\n".join(
        [
            "# APIs",
            "",
            "Printed from the registrations in `src/millstream/broker/apis` by `tools/generate_docs.py`. The versions",
            "are those that an Apache Kafka 4.3.1 broker reports.",
            "",
            "| key | API | versions | what it does |",
            "|---|---|---|---|",
            *rows,
            "",
            "## Where an API departs from Apache Kafka",
            "",
            *notes,
            "",
        ]
    )


def row(api: Api) -> str:
    return f"| {api.key} | {api.name} | {api.min_version} to {api.max_version} | {summary(api)} |"


def ordered() -> list[Api]:
    return sorted(APIS.values(), key=lambda api: api.key)


def contract(api: Api) -> str:
    module = inspect.getmodule(api.handler)
    assert module is not None
    assert module.__doc__ is not None, f"{module.__name__} has no contract"
    return module.__doc__


def summary(api: Api) -> str:
    """The first sentence of the contract, without the name it starts with."""
    first = contract(api).split("\n\n")[0].replace("\n", " ")
    return first.partition(": ")[2].strip().rstrip(".")


def departure(api: Api) -> str:
    """What the contract says behind `Departure(s) from Apache Kafka:`; nothing if there are none."""
    found = DEPARTURE.search(contract(api))
    if found is None:
        raise ValueError(f"the contract of {api.name} does not say where it departs from Apache Kafka")
    text = " ".join(found[1].split())
    return "" if text.startswith("none known") else text


def settings_page() -> str:
    return "\n".join(
        [
            "# Settings",
            "",
            "Printed from the declarations in `src/millstream/broker/configs` by `tools/generate_docs.py`. The names,",
            "types and defaults are those of Apache Kafka 4.3.1. A setting marked *accepted* is checked, stored",
            "and reported, but has nothing to act on in a server of one node.",
            "",
            "## Server",
            "",
            *table(BROKER_CONFIGS),
            "",
            "## Topics",
            "",
            *table(TOPIC_CONFIGS),
            "",
            "## Groups",
            "",
            *table(GROUP_CONFIGS),
            "",
        ]
    )


def commands_page() -> str:
    lines = [
        "# Commands",
        "",
        "Printed from the command line itself by `tools/generate_docs.py`. Every command has `--help`, and `millstream",
        "--install-completion` teaches your shell all of them. Exit codes: 0 done, 1 it failed, 2 the command line was",
        "wrong, 3 the cluster cannot be reached, 4 what was named does not exist.",
        "",
        "A command finds its cluster by `--bootstrap` or `--context`, else by `MILLSTREAM_BOOTSTRAP` or",
        "`MILLSTREAM_CONTEXT`, else by the current context, else by the platform that runs here (`millstream up`),",
        "else at 127.0.0.1:9092.",
    ]
    for path, command in commands():
        lines += ["", f"## millstream {' '.join(path)}", "", sentence(command.help, path)]
        lines += ["", "```", usage(path, command), "```"]
        rows = [parameter_row(parameter, path) for parameter in command.params if parameter.name != "help"]
        if rows:
            lines += ["", "| | |", "|---|---|", *rows]
    return "\n".join([*lines, ""])


def commands() -> list[tuple[list[str], Any]]:
    """Every command that does something, with the words that call it."""
    root: Any = typer.main.get_command(app)
    context = root.context_class(root)
    found: list[tuple[list[str], Any]] = []
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        nested = getattr(command, "commands", None)
        found += [([name, inner], item) for inner, item in nested.items()] if nested else [([name], command)]
    return found


def usage(path: list[str], command: Any) -> str:
    words = command.collect_usage_pieces(command.context_class(command, info_name=path[-1]))
    return f"millstream {' '.join(path)} {' '.join(words)}"


def parameter_row(parameter: Any, path: list[str]) -> str:
    text = getattr(parameter, "help", None)
    if parameter.param_type_name == "argument":
        return f"| `{argument_name(parameter)}` | {cell(sentence(text, [*path, parameter.name]))} |"
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    default = parameter.default
    shown = isinstance(default, str | int | float) and not isinstance(default, bool) and default != ""
    return f"| {names} | {cell(sentence(text, [*path, *parameter.opts]))}{f' [default: {default}]' if shown else ''} |"


def argument_name(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def sentence(text: str | None, where: list[str]) -> str:
    if not text:
        raise ValueError(f"millstream {' '.join(where)} has no help text")
    return " ".join(text.split())


def table(configs: Mapping[str, Config]) -> list[str]:
    lines = ["| name | default | takes | what it is | |", "|---|---|---|---|---|"]
    for config in sorted(configs.values(), key=lambda config: config.name):
        if not config.internal:
            default = "" if config.default in (None, "") else f"`{config.default}`"
            use = "" if config.honoured else "accepted"
            lines.append(f"| `{config.name}` | {default} | {cell(config.expects())} | {cell(config.doc)} | {use} |")
    return lines


def cell(text: str) -> str:
    return text.replace("|", "\\|")


PAGES = {
    "apis.md": apis_page,
    "settings.md": settings_page,
    "commands.md": commands_page,
    "pipelines/reference.md": pipeline_docs.reference_page,
}


def main() -> int:
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())
        print(f"docs/{name} written")
    for path in pipeline_docs.pages():
        path.write_text(pipeline_docs.with_tables(path.read_text()))
        print(f"{path.relative_to(DOCS.parent)}: tables written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
