"""What of a run is not in its graphs, and why: said in words, since a file that is missing says nothing."""

from __future__ import annotations

from halation._errors import HalationError
from halation.encoders import Model, WordsAndSentence

__all__ = ["what_stays", "why_no_backbone"]


def what_stays(model: Model) -> dict[str, str]:
    """Parts of a run that graphs of a mean and a log-variance do not hold → why."""
    found = {}
    if model.config.model.gist:
        found["gist"] = "it orders what does not match; the graphs give the detail, which is what an index searches"
    if isinstance(model.network.text.backbone, WordsAndSentence):
        found["sentence encoder"] = (
            "text.onnx takes its vectors as the input `sentence`; preprocess.json says which model gives them"
        )
    if (model.folder / "calibration.json").is_file():
        found["calibration.json"] = "graphs give Gaussians, no probabilities; a plain export takes it"
    return found


def why_no_backbone(model: Model, error: HalationError) -> str:
    """Why there is no backbone.onnx, without a word about where things lie on this machine."""
    if model.images.backbone is None:
        return "it is not known which network computed the run's features; name the backbone"
    return error.render(lambda path: "the run" if path == model.folder else path.name)
