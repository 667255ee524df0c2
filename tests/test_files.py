"""Reading without executing anything, writing without leaving half a file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from halation import InputError
from halation._files import read_json, read_jsonl, read_lines, read_npy, write_text
from halation._storage import publish_file


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "x.txt"
    write_text(target, "old")

    def fail() -> None:
        with publish_file(target) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_written_file_has_ordinary_permissions(tmp_path: Path) -> None:
    write_text(tmp_path / "x.txt", "text")
    (tmp_path / "plain").write_text("text")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("x.txt", "plain")]
    assert modes[0] == modes[1]


def test_a_folder_that_is_not_there_is_named_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none does not exist"):
        write_text(tmp_path / "none" / "x.txt", "text")
    with pytest.raises(InputError, match="is a folder"):
        write_text(tmp_path, "text")


class Bomb:
    """What a pickle can do: run code when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


def test_pickled_objects_are_refused_and_never_run(tmp_path: Path) -> None:
    np.save(tmp_path / "bomb.npy", np.array([Bomb(tmp_path / "ran")], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"bomb\.npy is not a plain array"):
        read_npy(tmp_path / "bomb.npy")
    assert not (tmp_path / "ran").exists()


def test_arrays_are_read_without_copying_them_into_memory(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(6.0).reshape(2, 3))
    array = read_npy(tmp_path / "x.npy")
    assert isinstance(array, np.memmap)
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("size", [0, 5, 40, 100, 130])
def test_a_half_written_array_is_named(size: int, tmp_path: Path) -> None:
    np.save(tmp_path / "whole.npy", np.arange(6.0))
    (tmp_path / "half.npy").write_bytes((tmp_path / "whole.npy").read_bytes()[:size])
    with pytest.raises(InputError, match=r"half\.npy"):
        read_npy(tmp_path / "half.npy")


def test_an_archive_is_not_an_array(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.arange(3), b=np.arange(3))
    with pytest.raises(InputError, match="several arrays"):
        read_npy(tmp_path / "x.npz")


def test_json_errors_name_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": 1,\n "b": }')
    with pytest.raises(InputError, match=r"x\.json line 2 column 7"):
        read_json(tmp_path / "x.json")
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n\n[2]\n')
    with pytest.raises(InputError, match=r"x\.jsonl line 3: expected an object"):
        list(read_jsonl(tmp_path / "x.jsonl"))


def test_text_in_another_encoding_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes("one\ncafé\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"x\.txt line 2: not UTF-8"):
        list(read_lines(tmp_path / "x.txt"))


def test_lines_end_at_line_feeds_only_and_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes("\ufeffone\u2028still one\r\n\ntwo".encode())
    assert list(read_lines(tmp_path / "x.txt")) == [(1, "one\u2028still one"), (3, "two")]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    for read in (read_npy, read_json):
        with pytest.raises(InputError, match="none does not exist"):
            read(tmp_path / "none")
        with pytest.raises(InputError, match="is a folder"):
            read(tmp_path)


def test_json_that_python_cannot_hold_is_refused_with_its_place(tmp_path: Path) -> None:
    deep, long = "[" * 200_000, "1" * 5_000
    for content, reason in ((deep, "nested too deeply"), (long, "digits")):
        (tmp_path / "x.json").write_text(content)
        with pytest.raises(InputError, match=rf"x\.json: JSON that cannot be read \(.*{reason}"):
            read_json(tmp_path / "x.json")
        (tmp_path / "x.jsonl").write_text(f'{{"a": 1}}\n{content}\n')
        with pytest.raises(InputError, match=rf"x\.jsonl line 2: JSON that cannot be read \(.*{reason}"):
            list(read_jsonl(tmp_path / "x.jsonl"))
