"""A server as a process of its own: load, signals, slow clients, kill and restart."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlparse

import httpx
import pytest
from serving import TOKEN

TESTS = Path(__file__).parents[1]
Start = Callable[..., "Server"]


class Server:
    """A child process that serves, and a client of it."""

    def __init__(self, index: Path, **settings: object) -> None:
        pairs = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, sys.path)])}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "serving_child", str(index), *pairs],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        assert self.address, self.end()[1]
        self.client = httpx.Client(base_url=self.address, timeout=60)

    def ask(self, text: str, k: int = 3) -> httpx.Response:
        return self.client.post("/search", json={"text": text, "k": k})

    def end(self, how: int = signal.SIGTERM) -> tuple[int, str]:
        """Exit code and what it said on standard error."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors


@pytest.fixture
def index(tmp_path: Path, drawn: Path) -> Path:
    write(tmp_path, drawn)
    return tmp_path


def write(index: Path, drawn: Path, first: int = 60, slow: float = 0.0) -> None:
    told = json.dumps({"scenes": str(drawn), "first": first, "slow": slow})
    fresh = index / "index.json.new"
    fresh.write_text(told)
    fresh.replace(index / "index.json")


@pytest.fixture
def start(index: Path) -> Iterator[Start]:
    running: list[Server] = []

    def begin(**settings: object) -> Server:
        running.append(Server(index, **settings))
        return running[-1]

    yield begin
    for server in running:
        server.end(signal.SIGKILL)


def test_fifty_clients_get_answers_while_the_index_changes_under_them(start: Start, index: Path, drawn: Path) -> None:
    """The short form of bench/serve.py: no error, no dropped request, whichever index answered."""
    server, stop = start(token=TOKEN), threading.Event()
    answered: list[int] = []
    bearer = {"authorization": f"Bearer {TOKEN}"}

    def client(number: int) -> int:
        done = 0
        with httpx.Client(base_url=server.address, timeout=60, headers=bearer) as one:
            while not stop.is_set():
                response = one.post("/search", json={"text": f"star {number}", "k": 60})
                assert response.status_code == 200, response.text
                answered.append(len(response.json()["hits"]))
                done += 1
        return done

    with ThreadPoolExecutor(50) as pool:
        clients = [pool.submit(client, number) for number in range(50)]
        try:
            with httpx.Client(base_url=server.address, timeout=60, headers=bearer) as one:
                for size in (20, 40, 10):
                    time.sleep(1.0)
                    write(index, drawn, first=size)
                    if size == 40:
                        server.process.send_signal(signal.SIGHUP)
                    else:
                        assert one.post("/reload").json()["items"] == size
                time.sleep(1.0)
        finally:
            stop.set()
        assert min(each.result() for each in clients) > 0
    assert set(answered) == {60, 20, 40, 10}
    metrics = server.client.get("/metrics", headers=bearer).text
    assert 'halation_reloads_total{ended="done"} 3' in metrics and "halation_index_generation 4" in metrics
    assert 'status="5' not in metrics
    assert server.end()[0] == 0


def test_an_index_that_cannot_be_opened_leaves_the_old_one_in_use(start: Start, index: Path) -> None:
    server = start(token=TOKEN)
    server.client.headers["authorization"] = f"Bearer {TOKEN}"
    before = server.ask("a red star").json()["hits"]
    (index / "index.json").write_text("half a f")
    refused = server.client.post("/reload")
    assert refused.status_code == 409 and "the old one stays" in refused.json()["error"]
    server.process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 20
    while 'halation_reloads_total{ended="failed"} 2' not in server.client.get("/metrics").text:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert server.ask("a red star").json()["hits"] == before
    assert "the index was not reloaded" in server.end()[1]


def test_without_a_token_nobody_reloads_over_http(start: Start) -> None:
    refused = start().client.post("/reload")
    assert refused.status_code == 403 and "SIGHUP" in refused.json()["error"]


def test_a_server_that_is_asked_to_end_answers_what_it_has_begun(start: Start, index: Path, drawn: Path) -> None:
    write(index, drawn, slow=0.7)
    server = start()
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(server.ask, "a red star"), pool.submit(server.ask, "a blue star")]
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        assert [each.result().status_code for each in waiting] == [200, 200]
    assert server.end() == (0, "")
    with pytest.raises(httpx.ConnectError):
        server.ask("anybody there?")


def test_a_killed_server_starts_again_on_the_same_index_and_port(start: Start) -> None:
    server = start()
    before = [server.ask(text).json()["hits"] for text in ("a red star", "blue", "a circle at the top")]
    port = urlparse(server.address).port
    server.client.close()  # or not: a killed server's connections must not hold the port
    server.end(signal.SIGKILL)
    again = start(port=port)
    assert [again.ask(text).json()["hits"] for text in ("a red star", "blue", "a circle at the top")] == before


def test_a_client_that_says_nothing_or_never_ends_is_put_out_and_others_are_served(start: Start) -> None:
    server = start(receive_timeout=0.5)
    place = urlparse(server.address)
    half = b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
    with contextlib.ExitStack() as stack:
        openings = (b"", b"POST /search HT", b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\n", half)
        idle = [stack.enter_context(socket.create_connection((place.hostname, place.port))) for _ in openings]
        for connection, sent in zip(idle, openings, strict=True):
            connection.settimeout(20)
            connection.sendall(sent)
        assert server.ask("a red star").status_code == 200
        answers = [read_to_end(connection) for connection in idle]
    assert answers[:3] == [b"", b"", b""]
    assert answers[3].startswith(b"HTTP/1.1 408 ") and b"did not come in whole" in answers[3]
    assert server.ask("a red star").status_code == 200


def read_to_end(connection: socket.socket) -> bytes:
    found = b""
    while block := connection.recv(4096):
        found += block
        if b"whole" in found:
            break
    return found


def test_a_client_that_hangs_up_takes_its_search_out_of_the_queue(start: Start, index: Path, drawn: Path) -> None:
    """A page that searches while somebody types leaves most of its questions: they must not be worked through."""
    write(index, drawn, slow=0.4)
    server = start()
    place = urlparse(server.address)
    body = b'{"text": "star"}'
    head = b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    for _ in range(20):
        with socket.create_connection((place.hostname, place.port)) as connection:
            connection.sendall(head % len(body) + body)
            time.sleep(0.02)  # let it be read
    began = time.perf_counter()
    assert server.ask("a red star").status_code == 200
    assert time.perf_counter() - began < 4.0  # 20 × 0.4 s, had they been worked through
    assert 'status="499"' in server.client.get("/metrics").text


def test_a_port_that_is_taken_is_said_in_words(start: Start, index: Path) -> None:
    port = urlparse(start().address).port
    with pytest.raises(AssertionError, match="is another server there"):
        Server(index, port=port)
