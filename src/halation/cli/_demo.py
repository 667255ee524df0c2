"""The demo's made-up world: pictures that share subjects, colours and places, captions that fit several of them.

Two made-up models score every pair: both see subject, colour, action and place through noise, the second through less.
"""

from __future__ import annotations

import numpy as np

from halation._arrays import FloatArray
from halation._progress import Progress
from halation.evaluation import compare, evaluate
from halation.relevance import Truth

__all__ = ["run_demo", "sample_scores", "sample_truth"]

_SUBJECTS = (("dog", "puppy"), ("cat", "kitten"), ("boy", "young child"), ("woman", "lady"), ("bird", "small bird"))
_COLOURS = ("black", "white", "brown", "red")
_ACTIONS = (("running", "racing"), ("sleeping", "lying down"), ("jumping", "leaping"), ("looking around", "watching"))
_PLACES = (
    ("on the grass", "in a green field"),
    ("in the snow", "on a snowy slope"),
    ("on a sofa", "in the living room"),
    ("by the sea", "on the beach"),
)
_SENTENCES = (
    "A {colour} {subject} {action} {place}.",
    "There is a {subject} {place}, {action}.",
    "The {colour} {subject} is {action}.",
    "Somebody photographed a {colour} {subject} {place}.",
    "A {subject} {action}.",
)


def sample_truth(images: int = 200, seed: int = 0) -> Truth:
    """`images` pictures × five captions; the classes are what is in the picture."""
    generator = np.random.default_rng(seed)
    sizes = (len(_SUBJECTS), len(_COLOURS), len(_ACTIONS), len(_PLACES))
    scenes = np.stack([generator.integers(size, size=images) for size in sizes], axis=1)  # (images, 4)
    captions = []
    for subject, colour, action, place in scenes:
        for sentence in _SENTENCES:
            which = generator.integers(2, size=3)
            captions.append(
                sentence.format(
                    subject=_SUBJECTS[subject][which[0]],
                    colour=_COLOURS[colour],
                    action=_ACTIONS[action][which[1]],
                    place=_PLACES[place][which[2]],
                )
            )
    names = [
        [_SUBJECTS[subject][0], _COLOURS[colour], _ACTIONS[action][0], _PLACES[place][0]]
        for subject, colour, action, place in scenes
    ]
    image_of = np.repeat(np.arange(images), len(_SENTENCES))
    return Truth.from_captions(captions, image_of, classes=names, name="demo world")


def sample_scores(truth: Truth, noise: float, seed: int) -> FloatArray:
    """Cosines between what a model of this noise sees in the pictures and reads in the captions; (images, captions)."""
    assert truth.classes is not None and truth.image_of is not None
    generator = np.random.default_rng(seed)
    own = generator.normal(size=(truth.n_images, 8))  # what only this picture and its captions have
    seen = np.hstack([truth.classes.astype(np.float64), 0.5 * own])
    images = seen + noise * generator.normal(size=seen.shape)
    captions = seen[truth.image_of] + noise * generator.normal(size=(truth.n_captions, seen.shape[1]))
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    captions /= np.linalg.norm(captions, axis=1, keepdims=True)
    return np.asarray(images @ captions.T, dtype=np.float32)


def run_demo(progress: Progress) -> str:
    """Measure the better model, then compare the two; the text a person reads."""
    truth = sample_truth()
    scores = {name: sample_scores(truth, noise, seed) for name, noise, seed in (("A", 0.5, 1), ("B", 0.4, 2))}
    report_a, report_b = (evaluate(scores[name], truth, progress=progress) for name in "AB")
    return "\n".join(
        [
            "Model B, on a made-up world in which many pictures share what they show:",
            "",
            str(report_b),
            "",
            "Is B better than A, or was it luck?",
            "",
            str(compare(report_a, report_b)),
            "",
            "Now with your own model: halation evaluate scores.npy --data captions.jsonl --out report.json",
        ]
    )
