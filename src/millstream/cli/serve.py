"""`millstream serve`: the log server in the foreground.

Standard output gets one line, `listening on HOST:PORT`, when clients can connect; everything else is logged to standard
error. SIGTERM and Ctrl-C end it cleanly with exit code 0. What keeps it from starting is one line on standard error and
exit code 1 (2 if a setting or option is wrong), and nothing has been started or changed then.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from millstream.cli.options import command_app
from millstream.cli.output import fail
from millstream.folders import data_home
from millstream.logs import get_logger

if TYPE_CHECKING:
    from millstream.broker.configs.settings import Settings

DEFAULT_ADDRESS = "127.0.0.1:9092"
DEFAULT_METRICS_PORT = 9644
GARBAGE_THRESHOLD = 20_000


app = command_app("Run the log server in the foreground.")


@app.command(no_args_is_help=False)
def serve(
    listen: str = typer.Option(
        "", metavar="HOST:PORT", help=f"Where clients connect; port 0 takes a free one. [default: {DEFAULT_ADDRESS}]"
    ),
    data: Path | None = typer.Option(  # noqa: B008 - typer reads defaults this way
        None, metavar="DIR", help="The data folder. [default: millstream under the user's data home]"
    ),
    config: Path | None = typer.Option(  # noqa: B008
        None, metavar="FILE", help="A server.properties file with Kafka's settings."
    ),
    set_: list[str] = typer.Option(  # noqa: B008
        [], "--set", metavar="NAME=VALUE", help="One of Kafka's settings; wins over environment and file. Repeatable."
    ),
    ephemeral: bool = typer.Option(False, "--ephemeral", help="Keep the data in a temporary folder, gone at the end."),
    metrics: str = typer.Option(
        "",
        metavar="HOST:PORT",
        help=f"Where Prometheus finds /metrics, or 'off'. [default: port {DEFAULT_METRICS_PORT}, or a free one]",
    ),
    log_level: str = typer.Option("info", metavar="LEVEL", help="debug, info, warning or error."),
) -> None:
    """Run the log server in the foreground."""
    from millstream.broker.configs.listeners import broker_listeners
    from millstream.broker.configs.settings import Settings, SettingsError
    from millstream.engines.folder import owner
    from millstream.server.server import ServerError

    configure_logging(log_level)
    if ephemeral and data is not None:
        fail("--ephemeral keeps no data, so it does not go with --data", 2)
    try:
        settings = Settings.load(config, os.environ, set_)
        if listen or "listeners" not in settings.values:
            host, port = address(listen or DEFAULT_ADDRESS, "--listen")
            settings = settings.replace({"listeners": f"PLAINTEXT://{bracketed(host)}:{port}"})
        metrics_at = metrics_address(metrics, broker_listeners(settings)[0].host)
    except SettingsError as error:
        fail(str(error), 2)
    folder = Path(tempfile.mkdtemp(prefix="millstream-")) if ephemeral else data or data_folder(settings)
    if owner(folder) == "kafka":
        fail(f"{folder} holds the data of the kafka engine: `millstream up --data {folder}` starts it")
    try:
        run(_serve(settings, folder, metrics_at, ephemeral=ephemeral, fall_back=not metrics))
    except ServerError as error:
        fail(str(error), 1)
    finally:
        if ephemeral:
            shutil.rmtree(folder, ignore_errors=True)


async def _serve(
    settings: Settings, folder: Path, metrics_at: tuple[str, int] | None, *, ephemeral: bool, fall_back: bool
) -> None:
    from millstream.server.server import Server

    server = Server(settings, folder, ephemeral=ephemeral)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.request_stop)
    log = get_logger(__name__)
    await server.start()
    try:
        if metrics_at is not None:
            await server.start_metrics(*metrics_at, fall_back=fall_back)
            log.info("metrics", url=f"http://{server.metrics_endpoint.address}/metrics")
        log.info("started", data=str(folder), cluster_id=server.broker.cluster_id)
        gc.freeze()  # what a start has made stays: the collector need not look at it again,
        gc.set_threshold(GARBAGE_THRESHOLD)  # and a response of a thousand partitions is no reason to look at all
        print(f"listening on {server.address}", flush=True)
        await server.run()
    finally:
        await server.stop()
    log.info("stopped")


def run(main: Coroutine[Any, Any, None]) -> None:
    """On uvloop where there is one, with as many open files as the system allows."""
    _, allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # macOS has a limit of its own below its hard one
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, allowed))
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)


def address(text: str, option: str) -> tuple[str, int]:
    """HOST:PORT taken apart; a host may be in brackets."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        fail(f"{option} {text!r} is not HOST:PORT, for example {DEFAULT_ADDRESS}", 2)
    return host.strip("[]") or "127.0.0.1", int(port)


def metrics_address(text: str, host: str) -> tuple[str, int] | None:
    if text == "off":
        return None
    return address(text, "--metrics") if text else (host, DEFAULT_METRICS_PORT)


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def data_folder(settings: Settings) -> Path:
    """The setting's, or ours."""
    for name in ("log.dirs", "log.dir"):
        if name in settings.values:
            return Path(settings.values[name].partition(",")[0])
    return default_data()


def default_data() -> Path:
    """`millstream` under the user's data home."""
    return data_home() / "millstream"


def configure_logging(level: str) -> None:
    """Log lines to standard error."""
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        fail(f"--log-level {level!r} is not one of debug, info, warning, error", 2)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s.%(msecs)03d %(levelname)-7s %(message)s", "%H:%M:%S"))
    logging.getLogger("millstream").setLevel(number)
    logging.getLogger().addHandler(handler)
