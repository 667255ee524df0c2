"""What a collection costs, on one core: pictures and captions embedded a second, bytes an item, latency by size.

    OMP_NUM_THREADS=1 python -m bench.sizing               # writes docs/sizing.json, which docs/scaling.md is made of
    OMP_NUM_THREADS=1 python -m bench.sizing pictures      # that part of it anew

Rates are in processor time, so that a busy machine counts little; latencies by the clock. Embeddings are drawn from a
mixture of 1,000 clusters, so that an index has something to find; pictures are drawn too.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from bench.measuring import machine
from halation._files import write_text
from halation.data._photos import as_rgb
from halation.encoders import EfficientNetLite0, Encoder, MiniLMText, PCMEPPHead, Vocabulary, WordsGRU
from halation.gaussian import Gaussian
from halation.index import Index

ROOT = Path(__file__).resolve().parents[1]
_SENTENCE = "a brown dog runs through deep snow beside a wooden fence"
DIM, CLUSTERS, SIZES = 128, 1000, (10_000, 100_000, 1_000_000)


def main() -> None:
    torch.set_num_threads(1)
    path = ROOT / "docs" / "sizing.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    found |= {"machine": machine(), "dim": DIM}
    for part in sys.argv[1:] or PARTS:
        found[part] = PARTS[part]()
        write_text(path, json.dumps(found, indent=1) + "\n")
    print("wrote docs/sizing.json; now: python docs/tables.py")


def _rate(work: Callable[[], Any], items: int, seconds: float = 1.5) -> float:
    """Items a second: the best of some repeats."""
    work()
    taken, began = [], time.process_time()
    while time.process_time() - began < seconds or len(taken) < 3:
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return round(items / min(taken), 1)


def _pictures(count: int = 16) -> dict[str, float]:
    """JPEGs of 500 × 375: decoded and made ready; seen by EfficientNet-Lite0 and a head."""
    generator = np.random.default_rng(0)
    files = []
    for _ in range(count):
        small = Image.fromarray(generator.integers(256, size=(12, 16, 3), dtype=np.uint8))
        held = io.BytesIO()
        small.resize((500, 375), Image.Resampling.BICUBIC).save(held, "JPEG", quality=90)
        files.append(held.getvalue())
    backbone = EfficientNetLite0(trainable=False)
    encoder = Encoder(backbone, PCMEPPHead(backbone.pooled_dim, 0, DIM)).eval()

    def ready() -> torch.Tensor:
        return torch.stack([backbone.preprocess(as_rgb(Image.open(io.BytesIO(file)))) for file in files])

    pixels = ready()
    with torch.no_grad():
        return {"decoded": _rate(ready, count), "encoded": _rate(lambda: encoder(pixels), count)}


def _texts() -> dict[str, Encoder]:
    vocabulary = Vocabulary.build([_SENTENCE], min_count=1)
    gru, minilm = WordsGRU(vocabulary, 50, 256), MiniLMText(trainable=False)
    return {
        name: Encoder(text, PCMEPPHead(text.pooled_dim, text.local_dim, DIM)).eval()
        for name, text in (("words and a GRU", gru), ("MiniLM", minilm))
    }


def _captions(count: int = 64) -> dict[str, float]:
    """Captions of eleven words, as COCO's are on average."""
    said = [_SENTENCE] * count
    found = {}
    for name, encoder in _texts().items():
        backbone: Any = encoder.backbone
        with torch.no_grad():
            found[name] = _rate(lambda: encoder(backbone.tokenize(said)), count)  # noqa: B023
    return found


def _drawn(n: int, seed: int) -> Gaussian:
    """Points around centres that are the same for every seed, brought to length 1."""
    centres = np.random.default_rng(0).standard_normal((CLUSTERS, DIM), np.float32)
    generator = np.random.default_rng((1, seed))
    means = centres[generator.integers(CLUSTERS, size=n)] + generator.standard_normal((n, DIM), np.float32)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    log_var = (-6.0 + 0.3 * generator.standard_normal((n, 1), np.float32)).repeat(DIM, axis=1)
    return Gaussian(torch.from_numpy(means), torch.from_numpy(log_var))


def _index(n: int) -> dict[str, Any]:
    items, queries = _drawn(n, 0), _drawn(320, 1)
    start = time.perf_counter()
    index = Index([f"{number}.jpg" for number in range(n)], items)
    built = time.perf_counter() - start
    taken = []
    for row in range(320):
        start = time.perf_counter()
        index.search(queries[row], 10)
        taken.append(time.perf_counter() - start)
    with tempfile.TemporaryDirectory() as name:
        index.save(f"{name}/idx")
        size = sum(path.stat().st_size for path in Path(name).rglob("*") if path.is_file())
    tuning = {key: index.meta["tuning"].get(key) for key in ("structure", "lists", "probes", "recall")}
    print(n, tuning, f"{1e3 * np.median(taken[20:]):.2f} ms", f"{size / n:.0f} B", f"{built:.0f} s", flush=True)
    latency = round(1e3 * float(np.median(taken[20:])), 3)
    return {"items": n, "bytes": round(size / n), "ms": latency, "build_s": round(built, 1), **tuning}


PARTS: dict[str, Callable[[], Any]] = {
    "pictures": _pictures,
    "captions": _captions,
    "index": lambda: [_index(size) for size in SIZES],
}

if __name__ == "__main__":
    main()
