"""The verbs that search: embed, index, search."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from halation._errors import InputError, one_of
from halation.cli._console import is_first_process, progress_bar

if TYPE_CHECKING:
    from halation.calibration import Verdict
    from halation.index import HubnessKind
    from halation.search import Answer, Embeddings, Hit

__all__ = ["add_verbs"]

_WIDTH = 60  # characters of a caption that are shown
_BAR = 10
_VERDICTS: dict[Verdict, str] = {
    "matches": "something here matches:",
    "unsure": "not sure that anything here matches",
    "nothing": "nothing here matches",
}
_HUBNESS: dict[str, HubnessKind] = {"csls": "csls", "dual-softmax": "dual_softmax"}


def embed(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")],
    source: Annotated[
        Path,
        typer.Argument(
            metavar="IMAGES_OR_CAPTIONS",
            help="A folder of pictures, a .jsonl, a .txt of captions, .tar shards, or a dataset's folder.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the embeddings.")],
    side: Annotated[str, typer.Option(help="images, captions or both; auto: all that the source has.")] = "auto",
    split: Annotated[str | None, typer.Option(help=r"The split of a dataset to embed.  \[default: all]")] = None,
    root: Annotated[Path | None, typer.Option(help="Folder that the file names in a .jsonl are relative to.")] = None,
    backbone: Annotated[
        str | None, typer.Option(help="Network that computed the features, for a run trained on features.")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Pictures per batch.")] = 64,
    workers: Annotated[int | None, typer.Option(help="Threads that decode pictures.")] = None,
) -> None:
    """Embed pictures or captions with a trained model.

    If it is interrupted, run the same command again: it continues where it stopped.

    To use several processes, start it with torchrun.
    """
    from halation.search import embed as embed_source

    start = time.monotonic()
    with progress_bar(shown=is_first_process()) as progress:
        embeddings = embed_source(
            run, source, out, side=side, split=split, root=root, backbone=backbone, batch_size=batch_size,
            workers=workers, progress=progress,
        )  # fmt: skip
    if not embeddings.complete:
        rank = os.environ.get("RANK", "0")
        print(f"process {rank} is done; the folder is complete when the other processes are done, too", file=sys.stderr)
        return
    _print_embedded(embeddings, time.monotonic() - start)


def _print_embedded(embeddings: Embeddings, seconds: float) -> None:
    counts = " and ".join(f"{len(embedded):,} {side}" for side, embedded in embeddings.sides.items())
    print(f"{embeddings.folder}: {counts} ({seconds:.1f} s)")
    for _, reason in embeddings.corrupt[:3]:
        print(f"left out: {reason}", file=sys.stderr)
    if len(embeddings.corrupt) > 3:
        print(f"left out: {len(embeddings.corrupt):,} in all, see {embeddings.folder / 'corrupt.tsv'}", file=sys.stderr)
    print(f"next: halation index {embeddings.folder} -o INDEX")


def index(
    embeddings: Annotated[Path, typer.Argument(metavar="EMBEDDINGS", help="The folder that `halation embed` wrote.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the index; an existing index is replaced.")],
    backend: Annotated[str, typer.Option(help="auto, exact, faiss or milvus.")] = "auto",
    uri: Annotated[str | None, typer.Option(help="Address of a Milvus server, with --backend milvus.")] = None,
    recall: Annotated[
        float, typer.Option(help="Share of the true ten nearest items that the backend must find.")
    ] = 0.99,
    hubness: Annotated[
        str | None, typer.Option(help="Correct for hubs, items near every query: csls or dual-softmax.")
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(help=r"Embeddings of typical queries, for --hubness.  \[default: the collection's captions]"),
    ] = None,
) -> None:
    """Make a searchable index of embeddings."""
    from halation.search import make_index

    start, kind = time.monotonic(), _HUBNESS[one_of(hubness, _HUBNESS, "hubness correction")] if hubness else None
    with progress_bar() as progress:
        made = make_index(
            embeddings, out, backend=backend, uri=uri, recall=recall, hubness=kind, queries=queries, progress=progress
        )
    correction = f", hubs corrected by {hubness}" if hubness else ""
    print(f"{made}: indexed in {time.monotonic() - start:.1f} s{correction}")
    print(f'next: halation search {made} "what to look for"   or: halation serve {made}')


def search(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="The folder that `halation index` wrote.")],
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="What to search for, in words.")] = None,
    k: Annotated[int, typer.Option("-k", help="How many hits to show.")] = 10,
    image: Annotated[Path | None, typer.Option(help="A picture to search with, instead of words.")] = None,
    want: Annotated[str, typer.Option(help="What to find, images or captions, if the index has both.")] = "auto",
    run: Annotated[
        Path | None, typer.Option(help="The run's folder, if it has moved since the index was made.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Search with words, or with a picture (--image).

    Words find pictures. A picture finds captions, or similar pictures with --want images.
    """
    from halation.data import read_picture
    from halation.search import open_search

    if (query is None) == (image is None):
        raise InputError('give either words ("two dogs in the snow") or --image PICTURE')
    picture = None if image is None else read_picture(image)
    opened = open_search(folder, run)
    answer = opened.text(query or "", k, want) if picture is None else opened.image(picture, k, want, str(image))
    if as_json:
        print(json.dumps(answer.to_dict(), ensure_ascii=False, indent=2))
        return
    _show(answer)
    across = answer.side != ("images" if image else "captions")  # pictures by words, or captions by a picture
    if across and not opened.about["calibrated"]:
        print(f"for match probabilities: halation calibrate {opened.about['run']} --data DATA", file=sys.stderr)


def _show(answer: Answer) -> None:
    if answer.verdict is not None:
        print(_VERDICTS[answer.verdict] + ("; the nearest:" if answer.hits and answer.verdict != "matches" else ""))
    names = [str(hit.path) if hit.path else hit.id for hit in answer.hits]
    width = max(map(len, names), default=0)
    for rank, (hit, name) in enumerate(zip(answer.hits, names, strict=True), start=1):
        caption = " ".join(hit.captions[:1])
        shown = caption if len(caption) <= _WIDTH else f"{caption[: _WIDTH - 1]}…"
        print(f"{rank:>3}  {_certainty(hit)}  {name.ljust(width)}  {shown}".rstrip())
    times = (
        f"{len(answer.hits)} {answer.side}; encoded in {answer.encode_ms:.0f} ms, found in {answer.search_ms:.1f} ms"
    )
    article = "an" if answer.ambiguity == "ordinary" else "a"
    ambiguity = f"{article} {answer.ambiguity} query; " if answer.ambiguity else ""
    print(f"\n{ambiguity}{times}")
    for sentence in (answer.expectation, answer.promise):
        if sentence:
            print(sentence)
    for note in answer.notes:
        print(f"note: {note}", file=sys.stderr)


def _certainty(hit: Hit) -> str:
    if hit.probability is None:
        return f"{hit.score:8.3f}"
    filled = round(_BAR * hit.probability)
    return f"{100 * hit.probability:3.0f} % {'█' * filled}{'·' * (_BAR - filled)}"


def add_verbs(app: typer.Typer) -> None:
    """Add the verbs of this file to the command line."""
    for verb in (embed, index, search):
        app.command(rich_help_panel="Search")(verb)
