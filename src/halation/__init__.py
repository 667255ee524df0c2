"""halation: image-text retrieval where many answers are right.

    import halation
    report = halation.evaluate(scores, halation.Truth.from_captions(captions, image_of))
    print(report)

Every name below loads on first use, so `import halation` costs milliseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halation._lazy import lazy

if TYPE_CHECKING:
    from halation import (
        distributed,
        evaluation,
        gaussian,
        losses,
        metrics,
        relevance,
        semantics,
        similarity,
        studies,
    )
    from halation._errors import HalationError, InputError, MissingExtra
    from halation.evaluation import Report, compare, evaluate
    from halation.gaussian import Gaussian
    from halation.interchange import from_pretrained
    from halation.relevance import Truth
    from halation.semantics import caption_relevance

__version__ = "0.1.0.dev0"

__all__ = [
    "Gaussian",
    "HalationError",
    "InputError",
    "MissingExtra",
    "Report",
    "Truth",
    "caption_relevance",
    "compare",
    "distributed",
    "evaluate",
    "evaluation",
    "from_pretrained",
    "gaussian",
    "losses",
    "metrics",
    "relevance",
    "semantics",
    "similarity",
    "studies",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "Gaussian": "halation.gaussian",
        "HalationError": "halation._errors",
        "InputError": "halation._errors",
        "MissingExtra": "halation._errors",
        "Report": "halation.evaluation",
        "Truth": "halation.relevance",
        "caption_relevance": "halation.semantics",
        "compare": "halation.evaluation",
        "distributed": "halation.distributed",
        "evaluate": "halation.evaluation",
        "evaluation": "halation.evaluation",
        "from_pretrained": "halation.interchange",
        "gaussian": "halation.gaussian",
        "losses": "halation.losses",
        "metrics": "halation.metrics",
        "relevance": "halation.relevance",
        "semantics": "halation.semantics",
        "similarity": "halation.similarity",
        "studies": "halation.studies",
    },
)
