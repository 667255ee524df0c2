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


Index = Annotated[Path, typer.Argument(metavar="INDEX", help="The folder that `halation index` wrote.")]
RunFolder = Annotated[Path | None, typer.Option(help="The run's folder, if it has moved since the index was made.")]
Host = Annotated[str, typer.Option(help="Address to listen on; any address but loopback needs a token.")]
Port = Annotated[int, typer.Option(help="Port to listen on; 0 for any free port.")]
Token = Annotated[
    str | None, typer.Option(envvar="HALATION_TOKEN", help="Token that clients must send; at least 16 characters.")
]
MaxK = Annotated[int, typer.Option(help="How many hits one answer may have.")]
MaxUpload = Annotated[float, typer.Option(help="Largest upload, in MB.")]
MaxMegapixels = Annotated[float, typer.Option(help="Largest picture that is decoded, in megapixels.")]
Rate = Annotated[float, typer.Option(help="Searches per second for each client; 0 for no limit.")]
ExplainRate = Annotated[float, typer.Option(help="Explanations per second for each client; 0 for no limit.")]
Workers = Annotated[int, typer.Option(help="Threads that encode and search.")]
Queue = Annotated[int, typer.Option(help="How many searches may wait; further ones are refused with 503.")]
Timeout = Annotated[float, typer.Option(help="Seconds before a request times out.")]
TrustedProxies = Annotated[
    list[str] | None,
    typer.Option(metavar="ADDRESS", help="Address of a proxy whose X-Forwarded-For is trusted; repeatable."),
]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Host name to answer to besides localhost, such as a proxy's; repeatable."),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log what the server does.")]


def serve(
    index: Index,
    run: RunFolder = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token: Token = None,
    max_k: MaxK = 100,
    max_upload_mb: MaxUpload = 20.0,
    max_megapixels: MaxMegapixels = 50.0,
    rate: Rate = 20.0,
    explain_rate: ExplainRate = 0.5,
    workers: Workers = 1,
    queue: Queue = 256,
    timeout: Timeout = 30.0,
    trusted_proxy: TrustedProxies = None,
    allowed_host: AllowedHosts = None,
    verbose: Verbose = False,
) -> None:
    """Serve an index: a search page for the browser, and a REST API."""
    from halation.serve import ServeSettings
    from halation.serve import serve as run_server

    settings = ServeSettings(
        host=host, port=port, token=token, max_k=max_k,
        max_upload=int(_finite(max_upload_mb, "--max-upload-mb") * 2**20),
        max_pixels=int(_finite(max_megapixels, "--max-megapixels") * 1e6),
        rate=rate, burst=max(1, round(3 * _finite(rate, "--rate"))), explain_rate=explain_rate,
        workers=workers, queue=queue, timeout=timeout,
        trusted_proxies=tuple(trusted_proxy or ()), allowed_hosts=tuple(allowed_host or ()),
    )  # fmt: skip
    log_level = "info" if verbose else "warning"
    run_server(index, settings=settings, run=run, ready=_announce(settings.token), log_level=log_level)


def _finite(value: float, option: str) -> float:
    if not math.isfinite(value):  # Typer takes "inf" and "nan" for numbers
        raise InputError(f"{option} is {value}", remedy="give a number")
    return value


def _announce(token: str | None) -> Any:
    """A function that prints what is being served and where; the server calls it once it takes connections."""

    def ready(address: str, app: Any) -> None:
        about = app.state.index.current.about
        parts = [f"{about[side]:,} {side}" for side in ("images", "captions") if about.get(side)] or ["an empty index"]
        calibration = "probabilities calibrated" if about.get("calibrated") else "no calibration: no probabilities"
        print_line(f"serving {' and '.join(parts)} ({calibration})")
        # browsers keep the part after "#" to themselves, so no log ever has the token
        print_line(f"open {address}/{f'#token={token}' if token else ''}")
        print_line(f"Ctrl-C stops the server; `kill -HUP {os.getpid()}` reloads the index")

    return ready
