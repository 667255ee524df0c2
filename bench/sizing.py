"""What a collection costs on one core: pictures and captions embedded per second, bytes per item, latency by size.

    OMP_NUM_THREADS=1 python -m bench.sizing               # writes docs/sizing.json, for docs/index_backends.md
    OMP_NUM_THREADS=1 python -m bench.sizing pictures      # only that part
    OMP_NUM_THREADS=1 python -m bench.sizing --quick       # some seconds: few repeats, only the smallest index

Rates are in processor time, so that a busy machine matters little; latencies are in wall-clock time. Embeddings are
drawn from a mixture of 1,000 clusters, so that an index has neighbours to find; pictures are drawn too.
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
from halation.data import as_rgb
from halation.encoders import EfficientNetLite0, Encoder, MiniLMText, PCMEPPHead, Vocabulary, WordsGRU
from halation.index import Index
from halation.similarity import Gaussian

ROOT = Path(__file__).resolve().parents[1]
_SENTENCE = "a brown dog runs through deep snow beside a wooden fence"
DIM, CLUSTERS, SIZES = 128, 1000, (10_000, 100_000, 1_000_000)


def main() -> None:
    torch.set_num_threads(1)
    path = ROOT / "docs" / "sizing.json"
    sizes: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    sizes |= {"machine": machine(), "dim": DIM}
    wanted = [word for word in sys.argv[1:] if word != "--quick"]
    quick = len(wanted) < len(sys.argv) - 1
    if unknown := set(wanted) - set(PARTS):
        sys.exit(f"unknown part {', '.join(sorted(unknown))}; known: {', '.join(PARTS)}")
    for part in wanted or PARTS:
        sizes[part] = PARTS[part](quick, sizes.get(part))
        write_text(path, json.dumps(sizes, indent=1) + "\n")
    print("wrote docs/sizing.json; now: python docs/tables.py")


def _rate(work: Callable[[], Any], items: int, quick: bool) -> float:
    """Items per second, the best of some repeats."""
    seconds, repeats = (0.0, 1) if quick else (1.5, 3)
    work()
    taken: list[float] = []
    started = time.process_time()
    while time.process_time() - started < seconds or len(taken) < repeats:
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return round(items / min(taken), 1)


def _pictures(quick: bool, before: object) -> dict[str, float]:
    """JPEGs of 500 × 375 per second: decoded and preprocessed; encoded by EfficientNet-Lite0 and a head."""
    count = 2 if quick else 16
    generator = np.random.default_rng(0)
    files = []
    for _ in range(count):
        small = Image.fromarray(generator.integers(256, size=(12, 16, 3), dtype=np.uint8))
        buffer = io.BytesIO()
        small.resize((500, 375), Image.Resampling.BICUBIC).save(buffer, "JPEG", quality=90)
        files.append(buffer.getvalue())
    backbone = EfficientNetLite0(trainable=False)
    encoder = Encoder(backbone, PCMEPPHead(backbone.pooled_dim, 0, DIM)).eval()

    def ready() -> torch.Tensor:
        return torch.stack([backbone.preprocess(as_rgb(Image.open(io.BytesIO(file)))) for file in files])

    pixels = ready()
    with torch.no_grad():
        return {"decoded": _rate(ready, count, quick), "encoded": _rate(lambda: encoder(pixels), count, quick)}


def _texts() -> dict[str, Encoder]:
    vocabulary = Vocabulary.build([_SENTENCE], min_count=1)
    gru, minilm = WordsGRU(vocabulary, 50, 256), MiniLMText(trainable=False)
    return {
        name: Encoder(text, PCMEPPHead(text.pooled_dim, text.local_dim, DIM)).eval()
        for name, text in (("words and a GRU", gru), ("MiniLM", minilm))
    }


def _captions(quick: bool, before: object) -> dict[str, float]:
    """Captions per second, of eleven words, the average of COCO."""
    count = 4 if quick else 64
    texts = [_SENTENCE] * count
    rates = {}
    for name, encoder in _texts().items():
        backbone: Any = encoder.backbone
        with torch.no_grad():
            rates[name] = _rate(lambda: encoder(backbone.tokenize(texts)), count, quick)  # noqa: B023
    return rates


def _drawn(n: int, seed: int) -> Gaussian:
    """Points of length 1 around centres that are the same for every seed."""
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


def _indexes(quick: bool, before: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Measure every size; with `quick` only the smallest, and keep the others."""
    kept = {one["items"]: one for one in before or ()} if quick else {}
    return [_index(size) if size == SIZES[0] or size not in kept else kept[size] for size in SIZES]


PARTS: dict[str, Callable[[bool, Any], Any]] = {"pictures": _pictures, "captions": _captions, "index": _indexes}

if __name__ == "__main__":
    main()
