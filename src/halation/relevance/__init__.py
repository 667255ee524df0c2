"""What is relevant to what: `Truth`, and readers for the field's files."""

from __future__ import annotations

from halation.relevance._coco import read_coco
from halation.relevance._cub import read_cub
from halation.relevance._extended import read_cxc, read_eccv
from halation.relevance._flickr8k import read_flickr8k
from halation.relevance._flickr30k import read_flickr30k
from halation.relevance._jsonl import read_jsonl
from halation.relevance._judgements import Judgements, read_flickr8k_judgements
from halation.relevance._karpathy import read_karpathy
from halation.relevance._read import read
from halation.relevance._trec import trec_ids, write_qrels
from halation.relevance._truth import Direction, Truth

__all__ = [
    "Direction",
    "Judgements",
    "Truth",
    "read",
    "read_coco",
    "read_cub",
    "read_cxc",
    "read_eccv",
    "read_flickr8k",
    "read_flickr8k_judgements",
    "read_flickr30k",
    "read_jsonl",
    "read_karpathy",
    "trec_ids",
    "write_qrels",
]
