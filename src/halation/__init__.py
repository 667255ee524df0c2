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
        calibration,
        data,
        encoders,
        evaluation,
        export,
        index,
        losses,
        metrics,
        report,
        search,
        semantics,
        serve,
        similarity,
        training,
    )
    from halation._errors import HalationError, InputError, MissingExtra
    from halation.data import Dataset, Truth, open_dataset
    from halation.encoders import Model, load
    from halation.evaluation import Report, compare, evaluate
    from halation.index import Index
    from halation.search import open_search
    from halation.semantics import caption_relevance
    from halation.similarity import Gaussian
    from halation.training import train

__version__ = "0.1.0.dev0"

__all__ = [
    "Dataset",
    "Gaussian",
    "HalationError",
    "Index",
    "InputError",
    "MissingExtra",
    "Model",
    "Report",
    "Truth",
    "calibration",
    "caption_relevance",
    "compare",
    "data",
    "encoders",
    "evaluate",
    "evaluation",
    "export",
    "index",
    "load",
    "losses",
    "metrics",
    "open_dataset",
    "open_search",
    "report",
    "search",
    "semantics",
    "serve",
    "similarity",
    "train",
    "training",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "Dataset": "halation.data",
            "Gaussian": "halation.similarity",
            "HalationError": "halation._errors",
            "Index": "halation.index",
            "InputError": "halation._errors",
            "MissingExtra": "halation._errors",
            "Model": "halation.encoders",
            "Report": "halation.evaluation",
            "Truth": "halation.data",
            "calibration": "halation.calibration",
            "caption_relevance": "halation.semantics",
            "compare": "halation.evaluation",
            "data": "halation.data",
            "encoders": "halation.encoders",
            "evaluate": "halation.evaluation",
            "evaluation": "halation.evaluation",
            "export": "halation.export",
            "index": "halation.index",
            "load": "halation.encoders",
            "losses": "halation.losses",
            "metrics": "halation.metrics",
            "open_dataset": "halation.data",
            "open_search": "halation.search",
            "report": "halation.report",
            "search": "halation.search",
            "semantics": "halation.semantics",
            "serve": "halation.serve",
            "similarity": "halation.similarity",
            "train": "halation.training",
            "training": "halation.training",
        },
    )
