"""The storage protocol: whole or not at all, on the disk before it counts, nothing left by the killed."""

from __future__ import annotations

import json
import os
import random
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from halation import InputError, _storage
from halation._storage import (
    check_files,
    checksums,
    current_version,
    exclusive,
    publish_file,
    publish_folder,
    read_version,
    replace_version,
    sweep,
)

HEAD = "head.json"


def forked(work: Callable[[], object]) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads; the child starts none
        child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child


def killed_while(work: Callable[[Callable[[], None]], object]) -> None:
    """Run work(ready) in a child process that is killed as soon as it calls ready()."""
    read, write = os.pipe()

    def ready() -> None:
        os.write(write, b".")
        time.sleep(60)

    child = forked(lambda: work(ready))
    os.close(write)
    os.read(read, 1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(read)


def put(target: Path, content: str) -> None:
    with replace_version(target, HEAD) as version:
        for name in ("a", "b"):
            (version.folder / name).write_text(content)
        version.head |= {"content": content, "files": checksums(version.folder)}


def read(target: Path) -> str:
    def both(head: dict[str, Any]) -> str:
        check_files(target / head["data"], head["files"])
        a, b = ((target / head["data"] / name).read_text() for name in ("a", "b"))
        assert a == b == head["content"]
        return a

    return read_version(lambda: json.loads((target / HEAD).read_text()), both)


class TestFilesAndFolders:
    def test_a_folder_appears_whole_or_not_at_all(self, tmp_path: Path) -> None:
        def fail() -> None:
            with publish_folder(tmp_path / "out") as folder:
                (folder / "half").touch()
                raise RuntimeError

        with pytest.raises(RuntimeError):
            fail()
        assert list(tmp_path.iterdir()) == []
        (tmp_path / "out").mkdir()  # an empty folder may be filled
        with publish_folder(tmp_path / "out") as folder:
            (folder / "file").write_text("text")
            assert list((tmp_path / "out").iterdir()) == []
        assert [path.name for path in tmp_path.iterdir()] == ["out"]
        assert (tmp_path / "out" / "file").read_text() == "text"
        with (
            pytest.raises(InputError, match="out exists already; name a new or empty folder"),
            publish_folder(tmp_path / "out"),
        ):
            pass

    def test_content_is_on_the_disk_before_it_is_published(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        happened: list[str] = []
        sync, rename, replace = _storage.sync, Path.rename, Path.replace
        monkeypatch.setattr(_storage, "sync", lambda path: (happened.append(f"sync {Path(path).name}"), sync(path)))
        monkeypatch.setattr(Path, "rename", lambda path, to: (happened.append("publish"), rename(path, to)))
        monkeypatch.setattr(Path, "replace", lambda path, to: (happened.append("publish"), replace(path, to)))
        with publish_folder(tmp_path / "out") as folder:
            (folder / "sub").mkdir()
            (folder / "sub" / "file").touch()
        assert set(happened[:3]) == {"sync file", "sync sub", f"sync {folder.name}"}
        assert happened[3:] == ["publish", f"sync {tmp_path.name}"]
        happened.clear()
        with publish_file(tmp_path / "x.txt") as temporary:
            temporary.write_text("text")
        assert happened == [f"sync {temporary.name}", "publish", f"sync {tmp_path.name}"]

    def test_what_the_killed_left_is_swept_and_what_is_being_written_is_not(self, tmp_path: Path) -> None:
        def folder(ready: Callable[[], None]) -> None:
            with publish_folder(tmp_path / "out") as partial:
                (partial / "file").touch()
                ready()

        def file(ready: Callable[[], None]) -> None:
            with publish_file(tmp_path / "x.npy") as partial:
                partial.write_text("half")
                ready()

        killed_while(folder)
        killed_while(file)
        left = list(tmp_path.iterdir())
        assert len(left) == 2 and {path.suffix for path in left} == {"", ".npy"}
        with publish_folder(tmp_path / "mine") as mine, publish_file(tmp_path / "mine.txt") as text:
            sweep(tmp_path)
            assert sorted(tmp_path.iterdir()) == sorted([mine, text])
            (mine / "file").touch()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "mine.txt"]

    def test_where_there_are_no_locks_nothing_is_swept(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_storage, "fcntl", None)
        with publish_file(tmp_path / "x.txt") as partial:
            partial.write_text("text")
            sweep(tmp_path)
        assert (tmp_path / "x.txt").read_text() == "text"
        with exclusive(tmp_path) as locked:
            assert not locked

    def test_a_lock_that_is_held_is_waited_for_or_an_error(self, tmp_path: Path) -> None:
        with exclusive(tmp_path) as locked:
            assert locked
            with pytest.raises(BlockingIOError), exclusive(tmp_path, wait=False):
                pass
        with exclusive(tmp_path, wait=False) as locked:
            assert locked

    def test_a_damaged_or_missing_file_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "file").write_text("text")
        files = checksums(tmp_path)
        check_files(tmp_path, files)
        (tmp_path / "sub" / "file").write_text("test")
        check_files(tmp_path, files, verify=False)
        with pytest.raises(InputError, match=r"sub/file is damaged: its checksum differs"):
            check_files(tmp_path, files)
        (tmp_path / "sub" / "file").write_text("longer")
        with pytest.raises(InputError, match=r"sub/file is damaged: it has 6 bytes instead of 4"):
            check_files(tmp_path, files, verify=False)
        (tmp_path / "sub" / "file").unlink()
        with pytest.raises(InputError, match=r"sub/file is missing"):
            check_files(tmp_path, files)


class TestVersions:
    def test_a_new_version_replaces_the_old_and_the_old_is_retired_first(self, tmp_path: Path) -> None:
        put(tmp_path, "one")
        first = tmp_path / str(current_version(tmp_path, HEAD))
        retired: list[tuple[Path, bool]] = []
        with replace_version(tmp_path, HEAD, retire=lambda old: retired.append((old, old.is_dir()))) as version:
            assert read(tmp_path) == "one"
            (version.folder / "c").touch()
        assert retired == [(first, True)]
        assert sorted(path.name for path in tmp_path.iterdir()) == [version.name, HEAD]

    def test_one_that_fails_leaves_the_old_version_or_no_folder(self, tmp_path: Path) -> None:
        def fail(target: Path) -> None:
            with replace_version(target, HEAD) as version:
                (version.folder / "half").touch()
                raise RuntimeError

        with pytest.raises(RuntimeError):
            fail(tmp_path / "new")
        assert list(tmp_path.iterdir()) == []
        put(tmp_path / "old", "one")
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(RuntimeError):
            fail(tmp_path / "old")
        assert sorted(tmp_path.rglob("*")) == before and read(tmp_path / "old") == "one"

    def test_a_head_that_cannot_be_written_leaves_the_old_version(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(tmp_path, "one")
        before = sorted(tmp_path.rglob("*"))

        def full(*arguments: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(_storage, "publish_file", full)
        with pytest.raises(OSError, match="No space left"):
            put(tmp_path, "two")
        assert sorted(tmp_path.rglob("*")) == before and read(tmp_path) == "one"

    def test_killed_at_any_moment_the_old_version_or_the_new_is_there(self, tmp_path: Path) -> None:
        put(tmp_path, "0")
        moments, seen = random.Random(0), set()
        for _ in range(15):
            child = forked(lambda: [put(tmp_path, str(number)) for number in range(10_000)])
            time.sleep(moments.uniform(0.0, 0.15))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            seen.add(read(tmp_path))
        assert len(seen) > 1
        put(tmp_path, "last")
        assert len(list(tmp_path.iterdir())) == 2

    def test_several_that_write_at_once_leave_one_whole_version(self, tmp_path: Path) -> None:
        children = [
            forked(lambda name=name: [put(tmp_path, f"{name}{number}") for number in range(20)]) for name in "abc"
        ]
        while children:
            done, _ = os.waitpid(-1, os.WNOHANG)
            children = [child for child in children if child != done]
            if (tmp_path / HEAD).exists():
                read(tmp_path)
        assert read(tmp_path) in ("a19", "b19", "c19")
        assert len(list(tmp_path.iterdir())) == 2
