"""Validation: measure a model on the dev split, keep the best weights, stop a run that has collapsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from halation._progress import Log
from halation.data import Loader
from halation.encoders import Encoded, Network, encode_split
from halation.evaluation import Report, evaluate, is_derived
from halation.training._collapse import CollapseDetector, TrainingStopped, ValidationStats, mean_cosine
from halation.training._learner import Learner
from halation.training._run import Board, Run, TrainState, rounded

__all__ = ["Validation", "Validator", "measure"]

_RECALLS = ("R@1", "R@5", "R@10")
_SIDES = ("i2t", "t2i")


@dataclass(frozen=True)
class Validation:
    """What a validation measured: the report, the encoded images, and the relevance that selects."""

    report: Report
    images: Encoded
    relevance: str

    @property
    def asp(self) -> tuple[float, float]:
        """ASP by the relevance that selects, in percent: i2t, t2i."""
        i2t, t2i = (self.report.results(side)[f"ASP({self.relevance})"] for side in _SIDES)
        return i2t, t2i

    def selection(self, select: str) -> float:
        """The number that the best epoch maximises: `rsum`, `rsum+asp` or `rsum+people`."""
        if select == "rsum+people":
            return self.report.rsum + sum(self.report.results(side)["R-P(people)"] for side in _SIDES)
        return self.report.rsum + (sum(self.asp) if select == "rsum+asp" else 0.0)

    def summary(self) -> dict[str, float]:
        """A few numbers for the log, in percent."""
        names = [name for name in self.report.results("i2t") if not is_derived(name)]
        values = {f"{name} {side}": round(self.report.results(side)[name], 3) for side in _SIDES for name in names}
        return values | {"rsum": round(self.report.rsum, 3)}


def measure(network: Network, loader: Loader, relevance: str = "tfidf", select: str = "rsum+asp") -> Validation:
    """R@1, 5, 10 and ASP of a split, and what `select` needs, without intervals; `relevance` is that of ASP."""
    images, captions = encode_split(network, loader)
    scores = network.all_scores(images, captions)
    names = dict.fromkeys((*_RECALLS, "ASP(tfidf)", f"ASP({relevance})"))
    if select == "rsum+people":
        names["R-P(people)"] = None
    report = evaluate(scores.numpy(), loader.dataset.truth, list(names), resamples=0)
    return Validation(report, images, relevance)


class Validator:
    """Measures the averaged weights after each epoch, on the first process."""

    def __init__(
        self,
        loader: Loader,
        run: Run,
        *,
        select: str,
        relevance: str,
        detector: CollapseDetector,
        board: Board,
        log: Log,
    ) -> None:
        self.loader, self.run, self.select, self.relevance = loader, run, select, relevance
        self.detector, self.board, self.log = detector, board, log

    def __call__(self, learner: Learner, state: TrainState, losses: Mapping[str, float]) -> str | None:
        """Measure, log and keep the weights if they are the best so far; why the run must stop, or None."""
        with learner.averaged():  # the loss terms' learnt scalars, too
            validation = measure(learner.objective.model, self.loader, self.relevance, self.select)
            selection = validation.selection(self.select)
            if selection > state.best:
                state.best, state.best_epoch = selection, state.epoch
                self.run.keep(learner.objective.model, learner.objective.learnt())
        summary, is_best = validation.summary(), state.best_epoch == state.epoch
        self.run.log(epoch=state.epoch, train=rounded(losses), dev=summary, selected=is_best)
        self.board.add("dev", summary, learner.updates)
        self.log(
            f"epoch {state.epoch + 1:3d}  loss {losses['loss']:8.4f}  "
            f"dev R@1 {summary['R@1 i2t']:.1f}/{summary['R@1 t2i']:.1f}  rsum {summary['rsum']:.1f}  "
            f"ASP {validation.asp[0]:.1f}/{validation.asp[1]:.1f}{'  *' if is_best else ''}"
        )
        recall = {side: summary[f"R@10 {side}"] / 100 for side in _SIDES}
        stats = ValidationStats(state.epoch, recall, mean_cosine(validation.images), losses, state.last_loss)
        try:
            state.at_chance = self.detector.check_validation(stats, state.at_chance)
        except TrainingStopped as stopped:
            return str(stopped)
        return None
