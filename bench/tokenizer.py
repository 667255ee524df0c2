"""Our `treebank` tokenizer against the Stanford one inside pycocoevalcap (needs Java)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from bench.captions import coco_like
from bench.results import Row
from halation.semantics import treebank


def run() -> Iterator[Row]:
    captions, _, what = coco_like()
    if shutil.which("java") is None:
        yield Row("tokenizer", f"`treebank` on {what}", "not compared: Java is not installed")
        return
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

    theirs = PTBTokenizer().tokenize({number: [{"caption": caption}] for number, caption in enumerate(captions)})
    same = sum(" ".join(treebank(caption)) == theirs[number][0] for number, caption in enumerate(captions))
    figure = f"{same:,} of {len(captions):,} captions tokenised alike"
    yield Row("tokenizer", f"`treebank` on {what}", figure, "Stanford PTB tokenizer (Java)")
