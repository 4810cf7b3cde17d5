"""Writes the pages of `docs/` that are tables of what the code declares: APIs and settings.

    python tools/generate_docs.py

A test compares the result with what is checked in, so that neither an API nor a setting can go undocumented.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from millstream.broker.apis import load_all
from millstream.broker.apis.registry import APIS, Api
from millstream.broker.configs.catalogue import BROKER_CONFIGS, GROUP_CONFIGS, TOPIC_CONFIGS
from millstream.broker.configs.declaration import Config

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


PAGES = {"apis.md": apis_page, "settings.md": settings_page}


def main() -> int:
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())
        print(f"docs/{name} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
