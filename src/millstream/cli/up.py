"""`millstream up`, `down` and `status`: the platform on this machine, with either engine.

`up` stays in the foreground and shows what goes on (`live`) until Ctrl-C, SIGTERM or the end of its terminal, which
stop the platform cleanly with exit code 0. `up --detach` starts the same in the background, in a session of its own,
and returns when clients can connect; what that process says goes to `run/up.log` in the data folder. As long as it
runs, its address is recorded (`cluster.local`), so that every command finds it, and `down` stops it.
"""

from __future__ import annotations

import contextlib
import logging
import logging.handlers
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from millstream.cli.options import Bootstrap, Context, Json, command_app, name_values
from millstream.cli.output import done, fail, print_json
from millstream.cli.serve import default_data
from millstream.cli.signals import Interrupted, Stop
from millstream.cluster import local
from millstream.cluster.connection import Connection
from millstream.cluster.contexts import resolve
from millstream.engines.errors import EngineError

if TYPE_CHECKING:
    from millstream.engines.engine import Engine

ENGINES = ("embedded", "kafka")
DETACH_SECONDS = 180.0
DOWN_SECONDS = 90.0
INTERRUPTED = 130
LARGEST_LOG = 16 << 20
READY = "listening on "

app = command_app("The platform on this machine: start it, stop it, see how it is.")

Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="The data folder. [default: millstream under the user's data home; kafka: millstream-kafka]",
    ),
]
RunningData = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Its data folder. [default: the one platform that runs here]"),
]


@app.command(no_args_is_help=False)
def up(
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine", metavar="ENGINE", help="embedded or kafka. [default: the data folder's, else embedded]"
        ),
    ] = None,
    brokers: Annotated[
        int | None,
        typer.Option(
            "--brokers", metavar="N", help="How many brokers (kafka). [default: as many as there were, else 1]"
        ),
    ] = None,
    data: Data = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", metavar="N", min=0, max=65535, help="The first broker's port; 0 takes free ones. [default: 9092]"
        ),
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Return when it is ready; it runs on in the background.")
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="One of Kafka's broker settings. Repeatable."),
    ] = None,
    separate_controller: Annotated[
        bool,
        typer.Option("--separate-controller", help="A new kafka cluster gets a controller process that is no broker."),
    ] = False,
    broker: Annotated[
        int | None,
        typer.Option(
            "--broker",
            metavar="ID",
            help="Start one broker of a running cluster: one that is down, or the next id for one more (kafka).",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Start the platform here and show how it is until Ctrl-C."""
    if engine is not None and engine not in ENGINES:
        fail(f"--engine {engine!r} is not one of {', '.join(ENGINES)}", 2)
    settings = name_values(set_ or [], "--set", "num.partitions=3")
    with _engine_errors():
        if broker is not None:
            _start_broker(broker, data)
            done(f"broker {broker} is up", json=json, broker=broker)
            return
        engine, folder = _where(engine, data)
        if engine == "embedded" and (separate_controller or (brokers or 1) != 1):
            fail("--brokers and --separate-controller need --engine kafka: the embedded engine is one broker", 2)
        if detach:
            _detach(engine, folder, json=json)
        else:
            options = {"brokers": brokers, "own_controller": separate_controller}
            _foreground(engine, folder, port, settings, options, json=json)


@app.command(no_args_is_help=False)
def down(
    data: RunningData = None,
    broker: Annotated[
        int | None, typer.Option("--broker", metavar="ID", help="Stop only this broker of the cluster (kafka).")
    ] = None,
    kill: Annotated[
        bool,
        typer.Option("--kill", help="With --broker: kill -9, as if its machine had gone, to see what happens then."),
    ] = False,
    json: Json = False,
) -> None:
    """Stop the platform that runs here, cleanly."""
    if kill and broker is None:
        fail("--kill goes with --broker ID only: the whole platform is always stopped cleanly", 2)
    platform = _running(data)
    with _engine_errors():
        if broker is not None:
            cluster = _cluster_of(platform)
            (cluster.kill_broker if kill else cluster.stop_broker)(broker)
            done(f"broker {broker} is {'killed' if kill else 'stopped'}", json=json, broker=broker, killed=kill)
            return
        _stop(platform)
    done(f"stopped {platform.engine} on {platform.data}", json=json, engine=platform.engine, data=platform.data)


@app.command(no_args_is_help=False)
def status(bootstrap: Bootstrap = None, context: Context = None, json: Json = False) -> None:
    """Show how the platform here, or any cluster, is."""
    from millstream.cluster.status import read

    connection = resolve(bootstrap, context)
    found = read(connection)
    platform = next((item for item in local.running() if item.bootstrap == connection.bootstrap), None)
    if json:
        values: dict[str, Any] = {"bootstrap": connection.bootstrap, **found.as_dict()}
        values["platform"] = None if platform is None else _platform_values(platform)
        print_json(values)
        return
    from rich.console import Console

    from millstream.cli.live import picture_of

    console = Console(soft_wrap=not sys.stdout.isatty(), highlight=False)
    console.print(f"[bold]{connection.bootstrap}[/bold]  cluster {found.cluster_id}")
    if platform is not None:
        console.print(f"{platform.engine} engine, data in {platform.data}, process {platform.pid}")
        for process in _platform_values(platform)["processes"]:
            if process["pid"] is None:
                console.print(f"[red]{process['name']} {process['id']} does not run[/red] (see {process['log']})")
    console.print()
    console.print(picture_of(found))


# --- where and what ---


def _where(engine: str | None, data: Path | None) -> tuple[str, Path]:
    """The engine and its data folder."""
    from millstream.engines.folder import owner

    if data is not None:
        return engine or owner(data) or "embedded", data.resolve()
    engine = engine or "embedded"
    return engine, (default_data() if engine == "embedded" else default_data().with_name("millstream-kafka")).resolve()


def _running(data: Path | None) -> local.Platform:
    """The platform that is meant; NotFound-like ends if there is none, or more than one."""
    if data is not None:
        platform = local.at(data.resolve())
        if platform is None:
            fail(f"no platform runs on {data}", 4)
        return platform
    platforms = local.running()
    if not platforms:
        fail("no platform runs here (`millstream up` starts one)", 4)
    if len(platforms) > 1:
        fail(f"several platforms run here: say which with --data: {', '.join(item.data for item in platforms)}", 2)
    return platforms[0]


def _make(engine: str, data: Path, port: int | None, settings: Mapping[str, str], options: dict[str, Any]) -> Engine:
    if engine == "embedded":
        from millstream.engines.embedded import EmbeddedEngine

        return EmbeddedEngine(data, port=port, settings=settings, log=_log_file(data))
    from millstream.engines.kafka import KafkaEngine

    return KafkaEngine(data, port=port, settings=settings, **options)


def _log_file(data: Path) -> Path:
    return local.run_folder(data) / "server.log"


@contextlib.contextmanager
def _engine_errors() -> Iterator[None]:
    try:
        yield
    except EngineError as error:
        fail(str(error), error.exit_code)


# --- up ---


def _foreground(
    name: str, data: Path, port: int | None, settings: Mapping[str, str], options: dict[str, Any], *, json: bool
) -> None:
    from millstream.cli import live
    from millstream.engines import folder

    folder.claim(data, name)
    lock = local.take_lock(data)
    if lock is None:
        platform = local.at(data)
        where = f" at {platform.bootstrap}" if platform is not None and platform.bootstrap else ""
        fail(f"it runs already{where}, on {data}: `millstream status` shows it, `millstream down` stops it")
    stop = Stop()
    if name == "kafka":
        options = {**options, "keep_open": (lock,)}
    else:
        _log_to(_log_file(data))
    engine = _make(name, data, port, settings, options)
    try:
        with live.starting() as show:
            engine.start(show)
        stop.ready()
        try:
            local.record(local.Platform(name, engine.bootstrap, str(data), os.getpid(), time.time()))
            live.run(engine, Connection(engine.bootstrap), stop, json=json)
            troubles = engine.health()
        finally:
            engine.stop()
            local.forget(data)
    except Interrupted:
        engine.stop()
        raise typer.Exit(INTERRUPTED) from None
    finally:
        os.close(lock)
    if not stop.is_set:
        fail(f"it ended by itself: {'; '.join(troubles)}")
    done("stopped", json=json, stopped=True)


def _log_to(file: Path) -> None:
    """The server's log lines, which would spoil the picture on a terminal."""
    handler = logging.handlers.RotatingFileHandler(file, maxBytes=LARGEST_LOG, backupCount=1)
    handler.setFormatter(logging.Formatter("%(asctime)s.%(msecs)03d %(levelname)-7s %(message)s", "%Y-%m-%dT%H:%M:%S"))
    logger = logging.getLogger("millstream")
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    logger.propagate = False


def _detach(engine: str, data: Path, *, json: bool) -> None:
    """Starts the same command again, in a session of its own, and waits for the line that says it is ready."""
    from millstream.cli import live
    from millstream.engines import folder
    from millstream.jvm.progress import Step

    folder.claim(data, engine)
    with live.starting() as show:
        if engine == "kafka":
            from millstream.engines import jars

            jars.fetch(progress=show)  # here, where somebody sees the progress bar
        log = local.run_folder(data) / "up.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        arguments = [argument for argument in sys.argv[1:] if argument not in ("--detach", "--json")]
        command = [sys.executable, "-m", "millstream", *arguments]
        with log.open("wb") as out:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )  # fmt: skip
        show(Step(f"starting the {engine} engine"))
        deadline = time.monotonic() + DETACH_SECONDS
        while not (lines := _ready_lines(log)) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
    if lines:
        process.returncode = 0  # it lives on without us; Popen need not warn
        bootstrap = lines[0].removeprefix(READY)
        done(lines[0], json=json, bootstrap=bootstrap, engine=engine, data=str(data), pid=process.pid)
        return
    if process.poll() is None:
        process.terminate()
        fail(f"it was not ready within {DETACH_SECONDS:.0f} s and has been stopped (see {log})")
    said = [line.removeprefix("millstream: ") for line in log.read_text(errors="replace").splitlines() if line.strip()]
    fail(said[-1] if said else f"it ended with exit code {process.returncode}", process.returncode or 1)


def _ready_lines(log: Path) -> list[str]:
    return [line for line in log.read_text(errors="replace").splitlines() if line.startswith(READY)]


# --- down, and single brokers ---


def _stop(platform: local.Platform) -> None:
    """SIGTERM to the process that watches over it; if that is gone, its brokers are stopped from here."""
    from millstream.engines import processes
    from millstream.engines.kafka import KafkaEngine

    data = Path(platform.data)
    if processes.is_running(platform.pid, "millstream"):
        os.kill(platform.pid, signal.SIGTERM)
    elif platform.engine == "kafka":
        KafkaEngine(data).stop()
        local.forget(data)
    deadline = time.monotonic() + DOWN_SECONDS
    while local.is_locked(data) and time.monotonic() < deadline:
        time.sleep(0.05)
    if local.is_locked(data):
        fail(f"process {platform.pid} has not ended yet; its log is in {data}")


def _cluster_of(platform: local.Platform) -> Any:
    from millstream.engines.kafka import KafkaEngine

    if platform.engine != "kafka":
        fail("--broker is for clusters of the kafka engine: the embedded engine is one broker", 2)
    return KafkaEngine(Path(platform.data))


def _start_broker(broker: int, data: Path | None) -> None:
    from millstream.cli import live

    cluster = _cluster_of(_running(data))
    with live.starting() as show:
        cluster.start_broker(broker, show)


def _platform_values(platform: local.Platform) -> dict[str, Any]:
    """What only this machine knows of it: its processes."""
    values: dict[str, Any] = {"engine": platform.engine, "data": platform.data, "pid": platform.pid}
    if platform.engine == "kafka":
        found = _cluster_of(platform).processes()
        values["processes"] = [
            {"name": item.name, "id": item.node_id, "roles": item.roles, "pid": item.pid, "log": str(item.log)}
            for item in found
        ]
    else:
        log = str(_log_file(Path(platform.data)))
        only = {"name": "broker", "id": 1, "roles": "broker,controller", "pid": platform.pid, "log": log}
        values["processes"] = [only]
    return values
