"""Whatever is wrong with a real index or its run, a client hears of it without the folders of the server's disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from halation import InputError
from halation.search import embed, make_index, open_search
from halation.serve._refusals import message_for_client
from layouts import draw
from runs import write_run

DAMAGES: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "garbled": lambda path: path.write_bytes(b"\xff{" * 200),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home of ann") / "all (2)"
    for number in range(8):
        draw(folder / "pictures" / f"p{number}.png", number)
    make_index(embed(write_run(folder / "run"), folder / "pictures", folder / "embedded"), folder / "index")
    return folder


@pytest.mark.parametrize("damage", DAMAGES)
def test_no_message_names_a_folder_of_the_disk(whole: Path, tmp_path: Path, damage: str) -> None:
    files = [path.relative_to(whole) for part in ("index", "run") for path in sorted((whole / part).rglob("*"))]
    messages = []
    for name in [name for name in files if (whole / name).is_file()]:
        copy = Path(shutil.copytree(whole, tmp_path / "home of ann" / "all (2)", dirs_exist_ok=True))
        DAMAGES[damage](copy / name)
        try:
            open_search(copy / "index", copy / "run").close()
        except (InputError, OSError) as error:
            messages.append(message_for_client(error, [copy / "index", copy / "run"]))
        shutil.rmtree(copy)
    assert len(messages) > 4
    for message in messages:
        assert "home of" not in message and str(tmp_path) not in message and len(message) > 20, message
