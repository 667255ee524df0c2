"""The server process: uvicorn with a deadline for slow clients, a graceful shutdown, and SIGHUP to reload."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from halation._errors import InputError
from halation.serve._app import create_app
from halation.serve._refusals import Refusal
from halation.serve._served_index import Searcher, ServedIndex
from halation.serve._settings import ServeSettings

__all__ = ["serve"]

_CONNECTIONS = 2000  # open at once; beyond that uvicorn answers 503 itself
_IDLE = 30  # seconds that a connection may wait for its next request


def serve(
    search: Searcher | str | os.PathLike[str],
    *,
    settings: ServeSettings | None = None,
    run: str | os.PathLike[str] | None = None,
    ready: Callable[[str, FastAPI], None] = lambda address, app: None,
    log_level: str = "warning",
) -> None:
    """Serve an index until SIGINT or SIGTERM.

    search   the index's folder, or a search that is already open
    run      the model's folder, if it has moved since the index was made
    ready    called with the address and the application as soon as the server takes connections

    Requests under way are answered before the process ends (`settings.shutdown_timeout`). SIGHUP reloads the index's
    folder without dropping a request.
    """
    settings = settings or ServeSettings()
    listening = _listen(settings)  # first, so that a port in use fails before an index is opened
    with listening:
        app = create_app(search, settings=settings, run=run)
        config = uvicorn.Config(
            app,
            http=_protocol(settings.receive_timeout, lambda: server.should_exit),
            ws="none",
            lifespan="on",
            log_level=log_level,
            access_log=False,  # it would record what people search for
            server_header=False,
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=list(settings.trusted_proxies),
            limit_concurrency=_CONNECTIONS,
            timeout_keep_alive=_IDLE,
            timeout_graceful_shutdown=max(1, round(settings.shutdown_timeout)),
        )
        server = uvicorn.Server(config)
        asyncio.run(_serve(server, listening, app, ready))


async def _serve(
    server: uvicorn.Server, listening: socket.socket, app: FastAPI, ready: Callable[[str, FastAPI], None]
) -> None:
    loop, tasks = asyncio.get_running_loop(), set[asyncio.Task[None]]()

    def reload() -> None:
        task = loop.create_task(_reload(app.state.index))
        tasks.add(task)  # the loop itself holds tasks weakly
        task.add_done_callback(tasks.discard)

    async def announce() -> None:
        while not server.started:
            await asyncio.sleep(0.01)
        ready(_address(listening), app)

    with suppress(NotImplementedError, AttributeError, ValueError, RuntimeError):  # Windows; not the main thread
        loop.add_signal_handler(signal.SIGHUP, reload)
    # uvicorn raises the signal again at the end; ignore it, because a server that was told to stop has not failed
    ends = (signal.SIGINT, signal.SIGTERM) if _in_main_thread() else ()
    handlers = [(number, signal.signal(number, lambda *_: None)) for number in ends]
    announcement = loop.create_task(announce())
    try:
        await server.serve(sockets=[listening])
    finally:
        announcement.cancel()
        for number, handler in handlers:
            signal.signal(number, handler)


async def _reload(index: ServedIndex) -> None:
    with suppress(Refusal):  # logged already; the old index stays
        await index.reload()


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _listen(settings: ServeSettings) -> socket.socket:
    try:
        addresses = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = addresses[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InputError(
            f"cannot listen on {settings.host}: {error.strerror or error}",
            remedy="give another address",
            argument="host",
        ) from None
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # reuse the port of a killed server at once
    try:
        listening.bind(address)
    except OSError as error:
        listening.close()
        raise InputError(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror}; is another server running?",
            remedy="Give another port, or 0 for any free one",
            argument="port",
        ) from None
    return listening


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _protocol(seconds: float, ending: Callable[[], bool]) -> type[asyncio.Protocol]:
    """uvicorn's HTTP/1.1 protocol, with a deadline for the headers of a request.

    uvicorn has no such deadline, and the application sees a request only when its headers are complete. So a client
    that sends one byte per minute could hold a connection for ever. Also, a connection that opens while the server
    shuts down is closed after its answer; uvicorn closes only those that were open before, and would wait.
    """

    class DeadlineProtocol(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if ending() and not self.transport.is_closing():
                self.shutdown()

        def _watch(self) -> None:
            if self.conn.their_state is not h11.IDLE:  # the headers are here; the body has a limit of its own
                self._stop()
            elif self._deadline is None:
                self._deadline = self.loop.call_later(seconds, self.transport.close)

        def _stop(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return DeadlineProtocol
