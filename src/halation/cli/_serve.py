"""`halation serve`: an index over HTTP, with a page."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from halation._errors import InputError
from halation.cli._console import print_line

__all__ = ["add_verbs"]


def add_verbs(app: typer.Typer) -> None:
    """Add the verb of this file to the command line."""
    app.command(rich_help_panel="Search")(serve)


def serve(
    index: Annotated[Path, typer.Argument(help="The index's folder, which `halation index` wrote.")],
    run: Annotated[
        Path | None, typer.Option(help="The run's folder, if it was moved since the index was made.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; every address but loopback needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = 8000,
    token: Annotated[
        str | None, typer.Option(envvar="HALATION_TOKEN", help="Token that clients must send; 16 characters or more.")
    ] = None,
    max_k: Annotated[int, typer.Option(help="Most hits in one answer.")] = 100,
    max_upload_mb: Annotated[float, typer.Option(help="Largest picture that may be sent, in MB.")] = 20.0,
    max_megapixels: Annotated[float, typer.Option(help="Largest picture that is decoded, in megapixels.")] = 50.0,
    rate: Annotated[float, typer.Option(help="Searches per second and client; 0 for no limit.")] = 20.0,
    explain_rate: Annotated[float, typer.Option(help="Explanations per second and client; 0 for no limit.")] = 0.5,
    workers: Annotated[int, typer.Option(help="Threads that encode and search.")] = 1,
    queue: Annotated[int, typer.Option(help="Searches that may wait; the next one is refused with 503.")] = 256,
    timeout: Annotated[float, typer.Option(help="Seconds until a request is given up.")] = 30.0,
    trusted_proxy: Annotated[
        list[str] | None, typer.Option(help="Address of a proxy whose X-Forwarded-For is trusted; repeatable.")
    ] = None,
    allowed_host: Annotated[
        list[str] | None, typer.Option(help="Host name to answer to besides localhost, such as a proxy's; repeatable.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what the server does.")] = False,
) -> None:
    """Serve an index in the browser and over HTTP."""
    from halation.serve import ServeSettings
    from halation.serve import serve as run_server

    settings = ServeSettings(
        host=host,
        port=port,
        token=token,
        max_k=max_k,
        max_upload=int(_finite(max_upload_mb, "--max-upload-mb") * 2**20),
        max_pixels=int(_finite(max_megapixels, "--max-megapixels") * 1e6),
        rate=rate,
        burst=max(1, round(3 * _finite(rate, "--rate"))),
        explain_rate=explain_rate,
        workers=workers,
        queue=queue,
        timeout=timeout,
        trusted_proxies=tuple(trusted_proxy or ()),
        allowed_hosts=tuple(allowed_host or ()),
    )
    run_server(
        index, settings=settings, run=run, ready=_greet(settings.token), log_level="info" if verbose else "warning"
    )


def _finite(value: float, option: str) -> float:
    if not math.isfinite(value):  # "inf" and "nan" are numbers at the prompt, too
        raise InputError(f"{option} is {value}; give a number")
    return value


def _greet(token: str | None) -> Any:
    def ready(address: str, app: Any) -> None:
        about = app.state.index.current.about
        parts = [f"{about[side]:,} {side}" for side in ("images", "captions") if about.get(side)] or ["an empty index"]
        calibration = "probabilities calibrated" if about.get("calibrated") else "no calibration: no probabilities"
        print_line(f"serving {' and '.join(parts)} ({calibration})")
        # after "#", so that no server and no log ever sees it
        print_line(f"open {address}/{f'#token={token}' if token else ''}")
        print_line(f"Ctrl-C ends; `kill -HUP {os.getpid()}` reads the index again")

    return ready
