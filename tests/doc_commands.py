"""The commands of a page's console blocks, run for real. What would take long is cut down, here and nowhere else."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable
from types import TracebackType

from doc_blocks import Block
from doc_processes import Machines, Served, curl, finished, free_port, made
from halation import InputError
from halation.training import read_recipe
from runs import halation

# what a recipe is cut down to, so that it trains in a second: the verb, the keys and the files stay real
SMALL = (
    "train.epochs=1", "train.batch_size=16", "train.warmup=1", "train.captions_per_image=1", "text.backbone=words_gru",
    "text.min_count=1", "text.dim=8", "text.hidden=8", "text.vectors=''", "model.dim=16",
)  # fmt: skip
# networks of the hub, which is not reachable everywhere; tests/build trains every recipe with small ones of their kind.
# A head that pools parts leaves the summary of these alone, as it does CLIP's: several processes must bear that
_NO_HUB = ("image.backbone=small_conv", "image.name=''", "image.size=32", "text.name=''", "train.layer_decay=1")
_DRAWN = ("image.size=32", "data.dev_images=12")
_LESS_HALATION: dict[tuple[str, ...], tuple[str, ...]] = {  # options that make a command's work small
    ("data", "scenes"): ("--train", "64", "--dev", "48", "--test", "24"),
    ("serve",): ("--port", "0"),
}
_LESS_PYTHON: dict[tuple[str, ...], tuple[str, ...]] = {
    ("-m", "bench.sizing"): ("--quick",),
    ("-m", "studies", "daa"): ("--only", "flickr8k_infonce-seed0"),
}
_OTHER = {"coco-5k": "flickr", "0.0.0.0": "127.0.0.1"}  # that protocol asks for 5,000 images
_FOLDER = "/shared/"  # of several machines; here one beside the others


def commands(block: Block) -> list[tuple[str, str]]:
    """(command, what is shown below it) of every line that begins with "$ "; a backslash joins lines."""
    joined = block.code.replace("\\\n", " ")
    found: list[tuple[str, str]] = []
    for line in joined.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif found:
            found[-1] = (found[-1][0], f"{found[-1][1]}{line}\n")
    assert found, f"{block.place}: a console block needs a line that begins with '$ '"
    return found


def cut_down(words: list[str]) -> list[str]:
    """The same command with less to do. The page's own settings are read too, and a wrong one is still wrong."""
    words = [_OTHER.get(word, word.replace(_FOLDER, "shared/")) for word in words]
    if words[0] == "train":
        return [*words, *_sets(_small(words[1:2]))]
    return _extended(words, _LESS_HALATION)


def _extended(words: list[str], options: dict[tuple[str, ...], tuple[str, ...]]) -> list[str]:
    return next(([*words, *more] for verb, more in options.items() if (*words[: len(verb)],) == verb), words)


def _small(recipe: list[str]) -> tuple[str, ...]:
    try:
        backbone = read_recipe(recipe[0]).image.backbone
    except (IndexError, InputError):
        return ()  # the command will say what is wrong
    return (*SMALL, *_NO_HUB) if backbone == "hub" else SMALL


def _sets(settings: tuple[str, ...]) -> list[str]:
    return [part for setting in settings for part in ("--set", setting)]


class Console:
    """A reader's terminal on one page. A server that it starts runs until the next is started, or the page ends."""

    def __init__(self, shown: Callable[[], str]) -> None:
        """shown: gives what this process printed since it was asked last."""
        self.shown = shown
        self.server: Served | None = None
        self.machines = Machines()
        self.programs: dict[str, Callable[[list[str], str], tuple[int, str] | None]] = {
            "halation": self._halation, "make": self._make, "pip": self._pip, "python": self._python,
            "torchrun": self._torchrun, "curl": self._curl,
        }  # fmt: skip

    def __enter__(self) -> Console:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.machines.kill()
        if kind is None:
            self._ctrl_c()
        elif self.server is not None:
            self.server.kill()

    def run(self, block: Block) -> None:
        """Every command of a block; one that ends otherwise than its page says is an AssertionError."""
        for command, below in commands(block):
            given, rest = re.fullmatch(r'((?:[A-Z_]+=(?:"[^"]*"|\S*) )*)(.*)', command).groups()  # type: ignore[union-attr]
            words = shlex.split(rest, comments=True)
            assert words[0] in self.programs, f"{block.place}: {words[0]} is not known to the test of the docs"
            ended = self.programs[words[0]](words[1:], given)
            if ended is None:  # it waits for the other machines
                continue
            code, said = ended
            wrong = below.startswith("halation: ")
            assert code == (2 if wrong else 0), f"{block.place}: {command} ended with {code}:\n{said}"
            if words[0] == "halation" and (wrong or self._serves(words[1:])):
                assert _form(below) in _form(said), f"{block.place}: it said\n{said}"
            if words[0] == "curl":
                missing = set(re.findall(r'"(\w+)":', below)) - set(
                    re.findall(r'"(\w+)":', json.dumps(json.loads(said)))
                )
                assert not missing, f"{block.place}: the answer has no {', '.join(sorted(missing))}:\n{said}"
        assert not self.machines.running, f"{block.place}: a machine waits for others that no command starts"

    def serve_python(self, block: Block) -> None:
        """A block of Python that serves, as a program of its own."""
        port = free_port()
        code, count = re.subn(r"\bport=\d+", f"port={port}", block.code)
        assert count == 1, f"{block.place}: it does not say its port"
        self._start(Served([sys.executable, "-c", code], port=port))

    def _start(self, server: Served) -> tuple[int, str]:
        self._ctrl_c()
        self.server = server
        server.ask()
        return 0, server.output

    def _ctrl_c(self) -> None:
        if self.server is not None:
            self.server.ctrl_c()
            self.server = None

    def _serves(self, words: list[str]) -> bool:
        return words[:1] == ["serve"]

    def _halation(self, words: list[str], given: str) -> tuple[int, str]:
        if self._serves(words):
            return self._start(Served([sys.executable, "-m", "halation", *cut_down(words)], given))
        assert not given, "an assignment before what runs in this process"
        self.shown()
        code = halation(*cut_down(words))
        return code, self.shown()

    def _torchrun(self, words: list[str], given: str) -> tuple[int, str] | None:
        verb = words.index("halation") + 1
        return self.machines.start([*words[:verb], *cut_down(words[verb:])])

    def _make(self, words: list[str], given: str) -> tuple[int, str]:
        if words == ["serve"]:
            return self._start(Served([*made(words), "PORT=0"]))
        small = shlex.join(["--images", "100", *_sets((*SMALL, *_DRAWN))])
        return finished([*made(words), f"ARGS={small}"])

    def _pip(self, words: list[str], given: str) -> tuple[int, str]:
        code, said = finished([sys.executable, "-m", "pip", *words, "--dry-run", "--no-index"])
        return int("does not provide the extra" in said) or code, said

    def _python(self, words: list[str], given: str) -> tuple[int, str]:
        return finished([sys.executable, *_extended(words, _LESS_PYTHON)])

    def _curl(self, words: list[str], given: str) -> tuple[int, str]:
        assert self.server is not None, "no block above starts a server"
        place = self.server.address.removeprefix("http://127.0.0.1")
        return curl([word.replace("localhost:8000", f"localhost{place}") for word in words])


def _form(text: str) -> str:
    """Words without line ends, any number for any other."""
    return " ".join(re.sub(r"\d[\d,]*", "0", text).split())
