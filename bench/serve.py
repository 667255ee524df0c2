"""The server under load: a second process on loopback, queried by 200 clients for a minute.

The collection is drawn (`scenes`) and its model is not trained, since the quality of answers does not change how long
they take. The client is a few lines over asyncio's streams, because it shares two cores with the server.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import urlopen

import numpy as np

from bench.measuring import side_by_side
from bench.results import Row
from halation._tensors import save_tensors
from halation.data import draw_scenes, read_scenes
from halation.encoders import Vocabulary, build_network
from halation.search import embed, make_index, open_search
from halation.training import read_recipe, to_toml

PICTURES, CLIENTS, SECONDS, K = 2000, 200, 60, 24
OVERHEAD_MS, GROWTH_MB = 5.0, 32.0


@dataclass
class Load:
    """The seconds that clients waited for each answer, and the milliseconds that the server reports for it."""

    times: list[float] = field(default_factory=list)
    encode: list[float] = field(default_factory=list)
    search: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def run(seconds: float = SECONDS, clients: int = CLIENTS) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        index, queries = write_index(Path(name))
        process, address = start(index)
        try:
            yield from _overhead(index, address, queries)
            yield from _load(address, queries, clients, seconds)
            yield _restart(index, address, queries, process)
        finally:
            process.kill()


def write_index(folder: Path, pictures: int = PICTURES) -> tuple[Path, list[str]]:
    """An index of drawn scenes, and captions to query it with."""
    draw_scenes(folder / "scenes", train=1, dev=1, test=pictures)
    run, captions = write_run(folder)
    embed(run, folder / "scenes", folder / "embedded", split="test")
    return make_index(folder / "embedded", folder / "index"), captions


def write_run(folder: Path) -> tuple[Path, list[str]]:
    """A run with random weights for the scenes in `folder`, and the captions of the scenes."""
    captions = list(read_scenes(folder / "scenes", "test").captions)
    recipe, run = read_recipe("scenes_pcme"), folder / "run"
    run.mkdir()
    vocabulary = Vocabulary.build(captions)
    save_tensors(run / "model.safetensors", build_network(recipe, vocabulary, (0, 0)).state_dict())
    vocabulary.save(run / "vocabulary.json")
    (run / "config.toml").write_text(to_toml(recipe), encoding="utf-8")
    (run / "run.json").write_text(json.dumps({"feature_dims": [0, 0], "state": "finished"}), encoding="utf-8")
    return run, captions


def start(index: Path, port: int = 0) -> tuple[subprocess.Popen[str], str]:
    """Start `halation serve` in a new process; returns the process and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "halation", "serve", str(index), "--port", str(port), "--rate", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("open "):
            return process, line.split()[1].rstrip("/")
    raise RuntimeError("the server did not start")


def _overhead(index: Path, address: str, queries: list[str]) -> Iterator[Row]:
    """What HTTP adds to an answer: one client, in turns with calls of Python in this process."""
    search = open_search(index)
    mine, theirs = [], []

    async def turns() -> None:
        url = urlparse(address)
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        for query in (queries * 2)[:600]:
            started = time.perf_counter()
            search.text(query, K)
            theirs.append(time.perf_counter() - started)
            started = time.perf_counter()
            await _ask(reader, writer, query, Load())
            mine.append(time.perf_counter() - started)
        writer.close()

    asyncio.run(turns())
    ours, python = (1000 * statistics.median(times[100:]) for times in (mine, theirs))
    yield Row(
        "serving",
        f"one client, {PICTURES:,} pictures, k = {K}: p50 of an answer over HTTP",
        f"{ours:.1f} ms, {ours - python:.1f} ms of it HTTP",
        f"calling Python: {python:.1f} ms; bar: {OVERHEAD_MS:g} ms more",
        OVERHEAD_MS / max(ours - python, 1e-3),
        1.0,
    )
    one, many = side_by_side(
        lambda: search.model.encode_texts(queries[:1]), lambda: search.model.encode_texts(queries[:16]), 30
    )
    yield Row("serving", "encoding a query", f"{1000 * one:.1f} ms", f"sixteen at once: {1000 * many:.1f} ms")


def _load(address: str, queries: list[str], clients: int, seconds: float) -> Iterator[Row]:
    load, memory = Load(), list[float]()
    asyncio.run(_crowd(address, queries, clients, seconds, load, memory))
    count = len(load.times)
    if load.errors:
        raise RuntimeError(f"{len(load.errors)} of {count + len(load.errors)} requests failed: {load.errors[0]}")
    what = f"{clients} clients for {seconds:g} s"
    yield Row("serving", f"{what}: answers", f"{count:,} ({count / seconds:.0f} per second), no error")
    yield Row("serving", f"{what}: an answer, waiting included", _spread([1000 * each for each in load.times]))
    yield Row("serving", f"{what}: of it encoding the query", _spread(load.encode))
    yield Row("serving", f"{what}: of it searching", _spread(load.search))
    settled = memory[len(memory) // 6]  # by then every connection and buffer is in use
    growth = memory[-1] - settled
    yield Row(
        "serving",
        f"{what}: memory of the server",
        f"{memory[-1]:.0f} MB, {growth:+.1f} MB since {seconds / 6:.0f} s after the start",
        f"bar: {GROWTH_MB:g} MB more",
        GROWTH_MB / max(growth, 0.1),
        1.0,
    )


def _restart(index: Path, address: str, queries: list[str], process: subprocess.Popen[str]) -> Row:
    """Kill the server and start it again on the same index and port; the answers must be the same."""
    before = [_answer(address, query) for query in queries[:20]]
    process.send_signal(signal.SIGKILL)
    process.wait()
    started = time.perf_counter()
    again, _ = start(index, urlparse(address).port or 0)
    taken = time.perf_counter() - started
    try:
        same = [_answer(address, query) for query in queries[:20]] == before
    finally:
        again.kill()
    if not same:
        raise RuntimeError("a server that was killed and started again answers differently")
    return Row("serving", "killed and started again on the same index: first answer after", f"{taken:.1f} s, the same")


async def _crowd(
    address: str, queries: list[str], clients: int, seconds: float, load: Load, memory: list[float]
) -> None:
    url, end = urlparse(address), time.perf_counter() + seconds

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        turn = number
        while time.perf_counter() < end:
            started = time.perf_counter()
            try:
                await _ask(reader, writer, queries[turn % len(queries)], load)
            except (OSError, EOFError, ValueError, RuntimeError) as error:
                load.errors.append(f"{type(error).__name__}: {error}")
                return
            load.times.append(time.perf_counter() - started)
            turn += clients
        writer.close()

    async def watch() -> None:
        while time.perf_counter() < end:
            text = await asyncio.to_thread(lambda: urlopen(f"{address}/metrics").read().decode())
            memory.append(float(text.split("process_resident_memory_bytes ")[-1].split()[0]) / 2**20)
            await asyncio.sleep(seconds / 30)

    await asyncio.gather(watch(), *(client(number) for number in range(clients)))


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, query: str, load: Load) -> None:
    body = json.dumps({"text": query, "k": K}).encode()
    head = f"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    writer.write(head.encode() + b"\r\n\r\n" + body)
    status, *headers = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    length = next(int(line.split(":")[1]) for line in headers if line.lower().startswith("content-length"))
    answer = json.loads(await reader.readexactly(length))
    if " 200 " not in status:
        raise RuntimeError(f"{status}: {answer}")
    load.encode.append(answer["encode_ms"])
    load.search.append(answer["search_ms"])


def _answer(address: str, query: str) -> list[object]:
    async def once() -> list[object]:
        url = urlparse(address)
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        body = json.dumps({"text": query, "k": K}).encode()
        head = "POST /search HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = json.loads((await reader.read()).split(b"\r\n\r\n", 1)[1])
        writer.close()
        return list(answer["hits"])

    return asyncio.run(once())


def _spread(milliseconds: list[float]) -> str:
    p50, p99 = np.percentile(milliseconds, [50, 99])
    return f"p50 {p50:,.1f} ms, p99 {p99:,.1f} ms"


if __name__ == "__main__":  # a shorter run: python -m bench.serve 10 50
    for row in run(*(float(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 2 else ()):
        print(" | ".join(cell for cell in row.cells() if cell), flush=True)
    print(os.cpu_count(), "cores")
