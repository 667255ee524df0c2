"""`python -m studies NAME …`: run a study, print its tables and write its page."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from halation import HalationError, InputError
from halation._files import write_text
from halation.cli import progress_bar

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Experiments of this repository: each answers one question on real annotations.",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `python -m studies …`; bad input prints one message and exits with code 2."""
    try:
        app(args=None if arguments is None else list(arguments), prog_name="python -m studies")
    except HalationError as error:
        print(f"studies: {error}", file=sys.stderr)
        raise SystemExit(2) from None


@app.command()
def positives(
    data: Annotated[Path, typer.Option(help="Folder with the COCO 5K captions, categories and CxC ground truth.")],
    out: Annotated[Path, typer.Option(help="Folder for the table (Markdown, JSON) and the plot (PNG).")] = Path(),
) -> None:
    """How many unannotated matches does each relevance find, and how many pairs must it call positive for them?"""
    from studies import positives as run_study

    _run(out, lambda progress: run_study(data, progress=progress))


@app.command()
def humans(
    data: Annotated[Path, typer.Option(help="Flickr8k folder with its Expert and CrowdFlower judgements.")],
    out: Annotated[Path, typer.Option(help="Folder for the table (Markdown, JSON).")] = Path(),
) -> None:
    """Which relevance ranks image-caption pairs as people do?"""
    from studies import humans as run_study

    _run(out, lambda progress: run_study(data, progress=progress))


@app.command()
def people(
    data: Annotated[Path, typer.Option(help="Flickr8k folder with its Expert and CrowdFlower judgements.")],
    coco: Annotated[Path, typer.Option(help="Folder with the COCO 5K captions and CxC's ratings.")],
    out: Annotated[Path, typer.Option(help="Folder for the table (Markdown, JSON).")] = Path(),
    ship: Annotated[Path | None, typer.Option(help="Also write the weights to this file of the package.")] = None,
) -> None:
    """When would people accept a caption? Fits the relevance `people`, and tests it on other people's ratings."""
    from studies import people as run_study

    study = _run(out, lambda progress: run_study(data, coco, progress=progress))
    if ship is not None:
        study.ship(ship)
        print(f"wrote {ship}", file=sys.stderr)


@app.command()
def ranking(
    data: Annotated[Path, typer.Option(help="Flickr8k folder with features and judgements.")],
    runs: Annotated[list[Path], typer.Option(help="A run trained on it, or a folder of runs; repeatable.")],
    out: Annotated[Path, typer.Option(help="Folder for the table (Markdown, JSON).")] = Path(),
) -> None:
    """Which metric ranks models as people do?"""
    from studies import ranking as run_study

    folders = [folder for path in runs for folder in ([path] if (path / "run.json").is_file() else _runs_in(path))]
    _run(out, lambda progress: run_study(data, folders, progress=progress))


@app.command()
def daa(
    data: Annotated[Path, typer.Option(help="Flickr8k folder with features and judgements.")],
    out: Annotated[
        Path, typer.Option(help="Folder for results.md, the plot and results/ (one file per run).")
    ] = Path(),
    runs: Annotated[Path, typer.Option(help="Folder for the runs; you may delete it afterwards.")] = Path("runs"),
    quick: Annotated[bool, typer.Option(help="One seed and three models: about twenty minutes.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="Only runs whose name contains this; repeatable.")] = None,
    at_once: Annotated[
        int | None, typer.Option(min=1, help="Runs in parallel; by default one per core, at most four.")
    ] = None,
) -> None:
    """Does training the semantic ranking help? Trains every model with and without DAA; resumable."""
    from halation._parallel import threads
    from studies import daa as run_study

    workers = min(4, threads()) if at_once is None else at_once
    _run(
        out,
        lambda progress: run_study(
            data, out, runs, quick=quick, only=only or (), at_once=workers, progress=progress, log=_print_line
        ),
    )


@app.command()
def trust(
    data: Annotated[Path | None, typer.Option(help="Flickr8k folder with its judgements.")] = None,
    run: Annotated[list[Path] | None, typer.Option(help="A run trained on it; repeatable.")] = None,
    natural: Annotated[
        list[Path] | None, typer.Option(help="A calibrated run for natural queries; repeatable.")
    ] = None,
    photos: Annotated[Path | None, typer.Option(help="Folder with the photographs that they search.")] = None,
    scenes: Annotated[Path | None, typer.Option(help="Drawn scenes, where the truth is exact.")] = None,
    scenes_run: Annotated[Path | None, typer.Option(help="A run trained on them.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the tables (Markdown, JSON) and the plot (PNG).")] = Path(),
) -> None:
    """Do probabilities hold by people's judgement? Are the three answers right? Do result sets hold a match?"""
    from studies import trust as run_study

    _run(
        out,
        lambda progress: run_study(
            data, run or (), natural_runs=natural or (), photos=photos, scenes=scenes, scenes_run=scenes_run,
            progress=progress, log=_print_line,
        ),
    )  # fmt: skip


@app.command()
def pages(
    out: Annotated[Path, typer.Option(help="Folder with results/ and studies/, and for the pages.")] = Path("docs"),
) -> None:
    """Write the pages of the studies again from their stored numbers, without running anything."""
    from studies.daa import collect
    from studies.humans import HumansStudy
    from studies.people import PeopleStudy
    from studies.positives import PositivesStudy
    from studies.ranking import RankingStudy
    from studies.trust import TrustStudy

    texts = {out / "results.md": collect(out).to_markdown()} if (out / "results").is_dir() else {}
    studies: tuple[Any, ...] = (HumansStudy, PeopleStudy, PositivesStudy, RankingStudy, TrustStudy)
    for name, study in zip(("humans", "people", "positives", "ranking", "trust"), studies, strict=True):
        numbers = out / "studies" / f"{name}.json"
        if numbers.is_file():
            texts[numbers.with_suffix(".md")] = study.read(numbers).to_markdown()
    if not texts:
        raise InputError("has no stored numbers of a study: no results/ and no studies/*.json", path=out)
    for path, text in texts.items():
        write_text(path, text)
        print(f"wrote {path}", file=sys.stderr)


def _runs_in(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.glob("*/run.json"))


def _run(out: Path, study: Callable[[Any], Any]) -> Any:
    out.mkdir(parents=True, exist_ok=True)  # first, so that a folder that cannot be made is reported before the work
    with progress_bar() as progress:
        result = study(progress)
    print(result)
    for path in result.write(out):
        print(f"wrote {path}", file=sys.stderr)
    return result


def _print_line(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
