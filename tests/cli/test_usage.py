"""What you see after a typing mistake: one line that says what is wrong, and which help to read."""

from __future__ import annotations

import pytest

from runs import halation

MISTAKES = {
    "evaluate s.npy --splt dev": "unknown option --splt; did you mean --split? See `halation evaluate --help`",
    "train --dat scenes": "unknown option --dat; did you mean --data? See `halation train --help`",
    "search idx dog --zzz": "unknown option --zzz; see `halation search --help`",
    "--verison": "unknown option --verison; did you mean --version? See `halation --help`",
    "search": "INDEX is missing: the folder that `halation index` wrote; see `halation search --help`",
    "calibrate run": "--data is missing: the dataset's folder; see `halation calibrate --help`",
    "data check": "FOLDER is missing: the dataset's folder; see `halation data check --help`",
    "search idx dog -k ten": "-k is 'ten'; give a whole number; see `halation search --help`",
    "search idx dog -kten": "-k must be a whole number; see `halation search --help`",
    "serve idx --port=http": "--port is 'http'; give a whole number; see `halation serve --help`",
    "index emb -o idx --recall high": "--recall is 'high'; give a number; see `halation index --help`",
    "evaluate s.npy --folds x": "--folds is 'x'; give a whole number; see `halation evaluate --help`",
    "evaluate s.npy --format html": "--format is 'html'; give one of table, markdown, latex, json; "
    "see `halation evaluate --help`",
    "serve idx --port": "--port needs a value; see `halation serve --help`",
    "search idx two dogs": "too many arguments: it takes INDEX QUERY (put several words in quotes); "
    "see `halation search --help`",
    "recipes all": "it takes no arguments; see `halation recipes --help`",
    "evalute s.npy": "unknown command 'evalute'; did you mean evaluate? See `halation --help`",
    "data chek": "unknown command 'chek'; did you mean check? See `halation data --help`",
    "data --": "a command is missing: check, scenes; see `halation data --help`",
    "frobnicate": "unknown command 'frobnicate'; see `halation --help`",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_typing_mistake_is_one_line_with_a_remedy_and_code_2(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert halation(*line.split()) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert printed.err == f"halation: {MISTAKES[line]}\n"


@pytest.mark.parametrize(
    "verb", ["evaluate", "compare", "train", "demo", "features", "export", "embed", "index", "report", "explain"]
)
def test_every_verb_that_writes_takes_the_short_option(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert halation(verb, "--help") == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if " --out " in line)
    assert " -o " in line


@pytest.mark.parametrize("line", ["", "data"])
def test_a_group_alone_shows_its_help(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert halation(*line.split()) == 2
    printed = capsys.readouterr()
    assert f"Usage: halation {line}".rstrip() in printed.out and not printed.err


@pytest.mark.parametrize("line", ["--help", "--version", "data --help", "evaluate --help"])
def test_what_you_ask_for_is_not_a_mistake(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert halation(*line.split()) == 0
    assert not capsys.readouterr().err
