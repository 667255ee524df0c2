"""Explain one answer: why does this picture score as it does for these words?

    explained = explain("runs/pcme", "photo.jpg", "two dogs in the snow")
    print(explained)                    # score, its parts, the words that carried it
    explained.to_png("why.png")         # also to_html("why.html"), to_dict()

Names load on first use: what an explanation holds costs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halation._lazy import lazy

if TYPE_CHECKING:
    from halation.explain._explain import Explainer, explain, explain_hit
    from halation.explain._explanation import Attention, Explanation, Joined, Part
    from halation.explain._influence import Unwanted

__all__ = ["Attention", "Explainer", "Explanation", "Joined", "Part", "Unwanted", "explain", "explain_hit"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "Attention": "halation.explain._explanation",
        "Explainer": "halation.explain._explain",
        "Explanation": "halation.explain._explanation",
        "Joined": "halation.explain._explanation",
        "Part": "halation.explain._explanation",
        "Unwanted": "halation.explain._influence",
        "explain": "halation.explain._explain",
        "explain_hit": "halation.explain._explain",
    },
)
