"""Every example runs as a person would run it, and what it prints is worth reading."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from layouts import captions_of, draw

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
ONE_THREAD = os.environ | {"OMP_NUM_THREADS": "1"}


def run(name: str, folder: Path, *arguments: Path) -> str:
    command = [sys.executable, EXAMPLES / name, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=ONE_THREAD, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert not list(folder.iterdir()), "an example leaves nothing behind"
    return done.stdout


def test_daa_in_your_own_loop_raises_asp_on_unseen_batches(tmp_path: Path) -> None:
    title, without, with_daa = run("daa_in_your_loop.py", tmp_path).splitlines()
    assert title.split() == ["weight", "of", "DAA", "R@1", "ASP"]
    assert float(with_daa.split()[2]) > float(without.split()[2]) + 5


def test_the_sharper_of_two_models_is_found_better_beyond_chance(tmp_path: Path) -> None:
    output = run("evaluate_scores.py", tmp_path)
    assert "ASP(cider)" in output and "ceiling 100" in output
    line = next(line for line in output.splitlines() if line.startswith("text → image  R@1"))
    low, p = re.search(r"\[([+-][\d.]+),.*?([\d.]+)$", line).groups()  # type: ignore[union-attr]
    assert float(low) > 0 and float(p) < 0.01


def test_a_folder_is_trained_on_and_the_vague_caption_is_the_uncertain_one(tmp_path: Path) -> None:
    output = run("train_on_your_folder.py", tmp_path)
    assert "240 pictures" in output and "!" not in output.split("epoch")[0]
    recall = re.search(r"^R@10 +([\d.]+)", output, re.MULTILINE)
    assert recall and float(recall[1]) > 80  # chance: 43
    assert re.search(r"least certain caption: “something \w+”", output)


def test_a_folder_of_ones_own_is_trained_on_and_left_as_it_was(tmp_path: Path) -> None:
    mine, here = tmp_path / "mine", tmp_path / "here"
    here.mkdir()
    for split, numbers in (("train", range(40)), ("dev", range(40, 46)), ("test", range(46, 52))):
        for number in numbers:
            draw(mine / "images" / f"{number}.png", number)
        rows = [{"image": f"{number}.png", "captions": captions_of(number, 3)} for number in numbers]
        (mine / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    before = sorted(mine.rglob("*"))
    assert "40 pictures" in run("train_on_your_folder.py", here, mine)
    assert sorted(mine.rglob("*")) == before


def test_a_folder_nobody_described_is_searched_by_words_and_by_a_picture(tmp_path: Path) -> None:
    output = run("search_pictures.py", tmp_path)
    asked, unknown, like = output.split("“a red zebra”")[0], *output.split("“a red zebra”")[1].split("like ")
    assert len(re.findall(r"red_on_blue", asked)) == 3
    assert "words the model does not know: zebra" in unknown
    assert len(re.findall(r"green_on_white", like)) >= 3


def test_probabilities_abstention_and_sets_hold_what_they_promise(tmp_path: Path) -> None:
    output = run("calibrate_and_abstain.py", tmp_path)
    there, gone = (
        {name: int(share) for name, share in re.findall(r"(\w+) (\d+)", line.split(":")[1])}
        for line in output.splitlines()
        if line.startswith("  the match is")
    )
    assert gone["nothing"] > 60 > 2 * there["nothing"] and there["matches"] > 60 > 2 * gone["matches"]
    assert there["unsure"] and gone["unsure"]
    inside = int(re.search(r"inside (\d+) %", output)[1])  # type: ignore[index]
    assert 84 <= inside <= 96


def test_a_model_given_away_scores_as_before(tmp_path: Path) -> None:
    output = run("export_model.py", tmp_path)
    assert "model.safetensors" in output and "README.md" in output
    assert "the same, bit for bit" in output and "qrels" in output


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda script: script.name)
def test_an_example_is_short_and_says_how_it_is_run(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 110
    assert f"python examples/{script.name}" in text.split('"""')[1]
    assert script.name in Path(__file__).read_text(encoding="utf-8"), "no test runs it"
