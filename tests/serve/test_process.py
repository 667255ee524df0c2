"""A server as a process of its own: load, signals, slow clients, kill and restart."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlparse

import httpx
import pytest

from halation._errors import InputError
from halation.serve import ServeSettings, serve
from serving import TOKEN
from serving_process import Server, write_index

Start = Callable[..., Server]
BEARER = {"authorization": f"Bearer {TOKEN}"}
QUERIES = ("a red star", "blue", "a circle at the top")


@pytest.fixture
def start(drawn: Path, tmp_path: Path) -> Iterator[Start]:
    running: list[Server] = []

    def begin(**settings: object) -> Server:
        running.append(Server(write_index(tmp_path / "index", drawn), **settings))
        return running[-1]

    yield begin
    for server in running:
        server.close()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_fifty_clients_get_answers_while_the_index_changes_and_the_server_ends(
    start: Start, tmp_path: Path, drawn: Path
) -> None:
    """The short form of bench/serve.py: no error, no dropped request, whichever index answered."""
    server, stop, answered = start(token=TOKEN), threading.Event(), list[int]()
    index = tmp_path / "index"

    def client(number: int) -> int:
        done = 0
        with httpx.Client(base_url=server.address, timeout=120, headers=BEARER) as one:
            while not stop.is_set():
                response = one.post("/search", json={"text": f"star {number}", "k": 60})
                assert response.status_code == 200, response.text
                answered.append(len(response.json()["hits"]))
                done += 1
        return done

    server.client.headers.update(BEARER)
    with ThreadPoolExecutor(50) as pool:
        clients = [pool.submit(client, number) for number in range(50)]
        try:
            for number, size in enumerate((20, 40, 10), start=2):
                time.sleep(1.0)
                write_index(index, drawn, first=size)
                if size == 40:
                    server.process.send_signal(signal.SIGHUP)
                    until(lambda: server.client.get("/health").json()["items"] == 40)
                else:
                    assert server.client.post("/reload").json() == {"items": size, "generation": number}
                until(lambda size=size: size in answered)  # type: ignore[misc]
            (index / "index.json").write_text("half a f")
            refused = server.client.post("/reload")
            assert refused.status_code == 409 and "the old one stays" in refused.json()["error"]
            server.process.send_signal(signal.SIGHUP)
            until(lambda: 'reloads_total{ended="failed"} 2' in server.client.get("/metrics").text)
        finally:
            stop.set()
        assert min(each.result() for each in clients) > 0
    assert set(answered) == {60, 20, 40, 10}
    metrics = server.client.get("/metrics").text
    assert 'halation_reloads_total{ended="done"} 3' in metrics and "halation_index_generation 4" in metrics
    assert 'status="5' not in metrics

    with ThreadPoolExecutor(2) as pool:  # asked to end, it answers what it has begun
        waiting = [pool.submit(server.ask, f"slowly, a {colour} star") for colour in ("red", "blue")]
        until(lambda: "halation_searches_held 2" in server.client.get("/metrics").text)
        server.process.send_signal(signal.SIGTERM)
        assert [each.result().status_code for each in waiting] == [200, 200]
    code, errors = server.end(None)
    assert code == 0 and "the index was not reloaded" in errors and "Cancel" not in errors
    with pytest.raises(httpx.ConnectError):
        server.ask("anybody there?")


def test_ctrl_c_is_how_it_ends_and_no_failure(start: Start) -> None:
    server = start()
    assert server.ask("a red star").status_code == 200
    assert server.end(signal.SIGINT) == (0, "")


def test_a_killed_server_starts_again_on_the_same_index_and_port(start: Start) -> None:
    server = start()
    before = [server.ask(text).json()["hits"] for text in QUERIES]
    server.end(signal.SIGKILL)  # its connections are still open
    again = start(port=urlparse(server.address).port)
    assert [again.ask(text).json()["hits"] for text in QUERIES] == before


def test_slow_silent_and_departed_clients_do_not_hold_the_server(start: Start) -> None:
    server = start(receive_timeout=2.0)
    refused = server.client.post("/reload")
    assert refused.status_code == 403 and "SIGHUP" in refused.json()["error"]  # there is no token to prove
    check_slow_clients(server)
    check_departed_clients(server)


def check_slow_clients(server: Server) -> None:
    """Headers or bodies that never come whole: put out after a while, and others are served meanwhile."""
    address = urlparse(server.address)
    half = b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
    with contextlib.ExitStack() as stack:
        openings = (b"", b"POST /search HT", b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\n", half)
        idle = [stack.enter_context(socket.create_connection((address.hostname, address.port))) for _ in openings]
        for connection, sent in zip(idle, openings, strict=True):
            connection.settimeout(60)
            connection.sendall(sent)
        assert server.ask("a red star").status_code == 200
        answers = [read_to_end(connection) for connection in idle]
    assert answers[:3] == [b"", b"", b""]
    assert answers[3].startswith(b"HTTP/1.1 408 ") and b"did not arrive completely" in answers[3]
    assert server.ask("a red star").status_code == 200


def read_to_end(connection: socket.socket) -> bytes:
    received = b""
    while b"completely" not in received and (block := connection.recv(4096)):
        received += block
    return received


def check_departed_clients(server: Server) -> None:
    """A page that searches while somebody types leaves most of its questions: they are not worked through."""
    address, body = urlparse(server.address), b'{"text": "slowly"}'
    head = b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    for held in range(1, 20):
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(head % len(body) + body)
            if held < 3:  # the first is being worked on, the second waits; then both leave
                until(lambda: "halation_searches_held 0" not in server.client.get("/metrics").text)
    until(lambda: "halation_searches_held 0" in server.client.get("/metrics").text)
    metrics = server.client.get("/metrics").text
    gone = float(metrics.split('method="POST",route="/search",status="499"} ')[1].split()[0])
    searched = float(metrics.split('halation_search_seconds_count{kind="text"} ')[1].split()[0])
    assert gone >= 10 and searched <= 2 + 19 - gone


def test_a_port_that_is_taken_is_said_in_words() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port}: .*is another server running"):
            serve("no such index", settings=ServeSettings(port=port))
    with pytest.raises(InputError, match="cannot listen on 203"):
        serve("no such index", settings=ServeSettings(host="203.0.113.7", token=TOKEN))  # nobody's address


def test_an_explanation_ends_when_its_client_leaves(start: Start) -> None:
    server = start()
    address, name = urlparse(server.address), server.ask("star").json()["hits"][0]["id"]
    body = json.dumps({"text": "slowly", "id": name}).encode()
    head = b"POST /explain HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(head % len(body) + body)
        until(lambda: "halation_explanations_held 1" in server.client.get("/metrics").text)
    until(lambda: "halation_explanations_held 0" in server.client.get("/metrics").text)  # it would take five minutes
    assert 'method="POST",route="/explain",status="499"} 1' in server.client.get("/metrics").text
