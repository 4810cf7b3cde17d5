"""Writes `src/millstream/wire/messages/` from the message schemas inside Apache Kafka's jars.

    python tools/generate_messages.py JAR [JAR ...]

The jars are kafka-clients, kafka-group-coordinator and kafka-transaction-coordinator of the Kafka version that
Millstream speaks. What is taken from them are the facts of the protocol: names, types, versions, defaults. The result
is checked in, so neither Java nor the jars are needed to install or run Millstream; a test compares every message of
every version with an independent implementation.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OUT = Path(__file__).parent.parent / "src" / "millstream" / "wire" / "messages"
MAX_VERSION = 32767

RECORD_MODULES = {
    "group_records": (
        "GroupMetadata",
        "OffsetCommit",
        "ConsumerGroupMetadata",
        "ConsumerGroupPartitionMetadata",
        "ConsumerGroupMemberMetadata",
        "ConsumerGroupTargetAssignmentMetadata",
        "ConsumerGroupTargetAssignmentMember",
        "ConsumerGroupCurrentMemberAssignment",
        "ConsumerGroupRegularExpression",
    ),
    "transaction_records": ("TransactionLog",),
}
DATA_MODULES = {
    "consumer_protocol": ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment"),
    "end_txn_marker": ("EndTxnMarker",),
    "headers": ("RequestHeader", "ResponseHeader"),
}
PYTHON_TYPES = {
    "bool": "bool",
    "string": "str",
    "bytes": "bytes",
    "records": "Records",
    "uuid": "bytes",
    "float64": "float",
}
ZERO_VALUES = {
    "bool": "False",
    "string": '""',
    "bytes": 'b""',
    "uuid": "ZERO_UUID",
    "float64": "0.0",
    "records": "None",
}


@dataclass
class Module:
    """One generated file: the messages it holds and the Python classes written so far."""

    name: str
    messages: list[dict[str, Any]] = field(default_factory=list)


def load_schemas(jars: list[Path]) -> dict[str, dict[str, Any]]:
    schemas = {}
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.namelist():
                if entry.startswith("common/message/") and entry.endswith(".json"):
                    text = re.sub(r"^\s*//.*$", "", archive.read(entry).decode(), flags=re.M)
                    schema = json.loads(re.sub(r"\s//[^\"]*$", "", text, flags=re.M))
                    schemas[schema["name"]] = schema
    return schemas


def snake(name: str) -> str:
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def versions(text: str | None) -> tuple[int, int]:
    if text is None or text == "none":
        return (1, 0)
    if text.endswith("+"):
        return (int(text[:-1]), MAX_VERSION)
    first, _, last = text.partition("-")
    return (int(first), int(last or first))


def modules(schemas: dict[str, dict[str, Any]]) -> list[Module]:
    result: dict[str, Module] = {}
    for schema in schemas.values():
        listeners = schema.get("listeners") or []
        if schema["type"] == "request" and "broker" in listeners and schema["validVersions"] != "none":
            stem = schema["name"].removesuffix("Request")
            result[stem] = Module(snake(stem), [schema, schemas[stem + "Response"]])
    for name, stems in RECORD_MODULES.items():
        pairs = [schemas[stem + part] for stem in stems for part in ("Key", "Value")]
        result[name] = Module(name, pairs)
    for name, stems in DATA_MODULES.items():
        result[name] = Module(name, [schemas[stem] for stem in stems])
    return sorted(result.values(), key=lambda module: module.name)


class Writer:
    """Writes the classes of one module, structs before what uses them."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.lines: list[str] = []
        self.common: dict[str, list[dict[str, Any]]] = {}
        names = [
            name for message in module.messages for name in {struct["name"] for struct in self.structs_of(message)}
        ]
        self.ambiguous = {name for name in names if names.count(name) > 1}

    def structs_of(self, node: dict[str, Any]) -> list[dict[str, Any]]:
        found = [
            {"name": item["type"].removeprefix("[]"), **item} | {"name": item["type"].removeprefix("[]")}
            for item in node.get("fields", [])
            if item.get("fields")
        ]
        found += node.get("commonStructs", [])
        return found + [deeper for item in found for deeper in self.structs_of(item)]

    def class_name(self, message: dict[str, Any], struct: str) -> str:
        if struct not in self.ambiguous:
            return struct
        prefix: str = message["type"].title() if message["type"] in ("request", "response") else message["name"]
        return prefix + struct

    def source(self) -> str:
        for message in self.module.messages:
            done: set[str] = set()
            self.common = {struct["name"]: struct["fields"] for struct in message.get("commonStructs", [])}
            self.fields_first(message, message.get("fields", []), done)
            self.message(message)
        body = "\n".join(self.lines)
        names = [name for name in ("NEVER", "ZERO_UUID", "Field", "Message") if re.search(rf"\b{name}\b", body)]
        head = ['"""Generated by tools/generate_messages.py from Kafka\'s message schemas: do not edit."""', ""]
        if "Records" in body:
            head += ["from collections.abc import Sequence", "from typing import Any", ""]
        head += [f"from millstream.wire.message import {', '.join(sorted(names))}"]
        if "Records" in body:
            head += ["", "Records = bytes | memoryview | Sequence[Any] | None"]
        return "\n".join(head) + "\n" + body + "\n"

    def fields_first(self, message: dict[str, Any], fields: list[dict[str, Any]], done: set[str]) -> None:
        for item in fields:
            name = item["type"].removeprefix("[]")
            nested = item.get("fields") or self.common.get(name)
            if nested:
                self.struct(message, name, nested, done)

    def struct(self, message: dict[str, Any], name: str, fields: list[dict[str, Any]], done: set[str]) -> None:
        if name in done:
            return
        done.add(name)
        self.fields_first(message, fields, done)
        self.write_class(message, self.class_name(message, name), fields, [])

    def message(self, message: dict[str, Any]) -> None:
        low, high = versions(message["validVersions"])
        constants = [f"    VERSIONS = ({low}, {high})"]
        if "apiKey" in message:
            constants.insert(0, f"    API_KEY = {message['apiKey']}")
        flexible = versions(message.get("flexibleVersions"))
        if flexible != (1, 0):
            constants.append(f"    FLEXIBLE = {flexible}")
        self.write_class(message, message["name"], message.get("fields", []), constants)

    def write_class(
        self, message: dict[str, Any], name: str, fields: list[dict[str, Any]], constants: list[str]
    ) -> None:
        columns = [self.column(message, item) for item in fields]
        slots = ", ".join(f'"{column["name"]}"' for column in columns)
        self.lines += ["", "", f"class {name}(Message):"]
        self.lines += [f"    __slots__ = ({slots}{',' if len(columns) == 1 else ''})", *constants]
        self.lines += ["    FIELDS = ("] + [f"        {column['spec']}," for column in columns] + ["    )"]
        if not columns:
            self.lines[-2:] = ["    FIELDS = ()"]
            return
        self.lines += ["", "    def __init__(", "        self,", "        *,"]
        self.lines += [f"        {column['parameter']}," for column in columns]
        self.lines += ["    ) -> None:"] + [f"        self.{column['assignment']}" for column in columns]

    def column(self, message: dict[str, Any], item: dict[str, Any]) -> dict[str, str]:
        name, kind = snake(item["name"]), item["type"]
        array = kind.startswith("[]")
        kind = kind.removeprefix("[]")
        is_struct = kind[0].isupper()
        python = self.class_name(message, kind) if is_struct else PYTHON_TYPES.get(kind, "int")
        nullable = versions(item.get("nullableVersions"))
        is_nullable = nullable != (1, 0)
        present = versions(item.get("versions", item.get("taggedVersions", "0+")))
        spec = [f'"{name}"', '"struct"' if is_struct else f'"{kind}"', str(present)]
        if is_nullable:
            spec.append(f"nullable={nullable}")
        if array:
            spec.append("array=True")
        if "tag" in item:
            spec += [f"tag={item['tag']}", f"tagged={versions(item['taggedVersions'])}"]
        if is_struct:
            spec.append(f"struct={python}")
        if "flexibleVersions" in item:
            spec.append(f"flexible={versions(item['flexibleVersions'])}")
        if array:
            annotation, default = f"list[{python}] | None", "None"
            assignment = f"{name} = {name}" if is_nullable else f"{name} = [] if {name} is None else {name}"
        elif is_struct:
            annotation, default = f"{python} | None", "None"
            optional = is_nullable or "tag" in item
            assignment = f"{name} = {name}" if optional else f"{name} = {python}() if {name} is None else {name}"
        else:
            default = self.default(kind, item.get("default"), is_nullable)
            nullable_type = is_nullable and python != "Records"
            annotation = f"{python} | None" if nullable_type else python
            assignment = f"{name} = {name}"
            if default != "None":
                spec.append(f"default={default}")
        return {
            "name": name,
            "spec": f"Field({', '.join(spec)})",
            "parameter": f"{name}: {annotation} = {default}",
            "assignment": assignment,
        }

    @staticmethod
    def default(kind: str, value: Any, nullable: bool) -> str:
        if value == "null":
            return "None"
        if value is None or value == "":
            return ZERO_VALUES.get(kind, "0")
        if kind == "string":
            return f'"{value}"'
        if kind == "bool":
            return "True" if str(value).lower() == "true" else "False"
        if kind == "uuid":
            return "ZERO_UUID"
        if kind == "float64":
            return str(float(value))
        return str(int(str(value), 0))


def main(arguments: list[str]) -> int:
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.glob("*.py"):
        if old.name != "__init__.py":
            old.unlink()
    made = modules(load_schemas([Path(argument) for argument in arguments]))
    for module in made:
        (OUT / f"{module.name}.py").write_text(Writer(module).source())
    for command in (["format", "--quiet"], ["check", "--quiet", "--fix"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, str(OUT)], check=True)
    print(f"{len(made)} modules written to {OUT}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
