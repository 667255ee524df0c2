"""Files and folders that are always whole: written beside the target, put on the disk, published by one rename.

Everything halation keeps (runs, features, embeddings, indexes, exports) is stored by this protocol:

1. Write into a partial file or folder beside the target. Its writer holds a lock on it.
2. Put it on the disk (fsync) and publish it by a rename. A reader sees the old one or the new one, never half of one.
3. `sweep` removes what killed writers left: partials that nobody has locked.

| to store | use |
|---|---|
| a file | `publish_file` |
| a folder that is written once | `publish_folder` |
| a folder that is replaced while others read it | `replace_version`, `read_version` |
| a folder that several processes change | `exclusive` |
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from halation._errors import InputError

try:
    import fcntl
except ImportError:  # Windows has no such locks: there, nothing is swept
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "DATA",
    "Version",
    "check_files",
    "checksums",
    "current_version",
    "exclusive",
    "publish_file",
    "publish_folder",
    "read_version",
    "replace_version",
    "sha256_of",
    "sweep",
    "sync",
]

DATA = "data-"
"""The beginning of the names of the folders that `replace_version` makes."""

_PARTIAL = ".halation-partial-"
_COPY_AGAIN = "copy the folder again, or make it again"
T = TypeVar("T")


@contextmanager
def publish_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary file beside `path`. It replaces `path` if the block succeeds, and is removed if it fails."""
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(f": the folder {target.parent} does not exist", path=target)
    if target.is_dir():
        raise InputError("is a folder", path=target, remedy="name a file")
    with _partial(target.parent, lambda path: path.touch(exist_ok=False), target.suffix) as temporary:
        yield temporary
        sync(temporary)
        temporary.replace(target)
        sync(target.parent)


@contextmanager
def publish_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new folder beside `path`. It becomes `path` if the block succeeds, and is removed if it fails.

    `path` must be new or an empty folder.
    """
    target = Path(path)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError("exists already", path=target, remedy="name a new or empty folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    with _partial(target.parent, Path.mkdir) as folder:
        yield folder
        _sync_tree(folder)
        if target.exists():
            target.rmdir()
        folder.rename(target)
        sync(target.parent)


@dataclass
class Version:
    """A new version of a folder's content.

    folder   write the content here
    name     the folder's name once it is published
    head     the content of the head file; its "data" will be the name
    """

    folder: Path
    name: str
    head: dict[str, Any] = field(default_factory=dict)


@contextmanager
def replace_version(
    path: str | os.PathLike[str], head: str, *, retire: Callable[[Path], None] | None = None
) -> Iterator[Version]:
    """Yield a new version of a folder's content, which replaces the old one if the block succeeds.

    The folder holds the head file, a JSON object, and the `data-…` folder that its key "data" names. The new data is
    on the disk before the head names it. Then the old data is removed; a process that has it open keeps it.

    retire   called with each old data folder before it is removed
    """
    target = Path(path)
    existed = target.exists()
    target.mkdir(parents=True, exist_ok=True)
    try:
        with _partial(target, Path.mkdir) as folder:
            version = Version(folder, f"{DATA}{folder.name[-8:]}")
            yield version
            _sync_tree(folder)
            with exclusive(target) as locked:
                before = current_version(target, head)
                _publish_version(target, head, version)
                for old in target.glob(f"{DATA}*"):
                    # under the lock, data that the head does not name was left by a process that was killed
                    if old.name == before or (locked and old.name != version.name):
                        if retire is not None:
                            retire(old)
                        shutil.rmtree(old, ignore_errors=True)
    except BaseException:
        if not existed:
            with contextlib.suppress(OSError):
                target.rmdir()  # fails if another process has published a version there meanwhile
        raise
    sweep(target)


def _publish_version(target: Path, head: str, version: Version) -> None:
    data = target / version.name
    try:
        version.folder.rename(data)
        sync(target)
        with publish_file(target / head) as temporary:
            text = json.dumps(version.head | {"data": version.name}, indent=1)  # ASCII: paths need not be UTF-8
            temporary.write_text(text + "\n", encoding="utf-8")
    except BaseException:
        if current_version(target, head) != version.name:
            shutil.rmtree(data, ignore_errors=True)
        raise


def current_version(path: Path, head: str) -> str | None:
    """The name of the data folder that the head file names; None if there is none."""
    try:
        return str(json.loads((path / head).read_text(encoding="utf-8"))["data"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_version(read_head: Callable[[], dict[str, Any]], read: Callable[[dict[str, Any]], T]) -> T:
    """The result of `read(read_head())`; tries again if another process replaced the version meanwhile."""
    while True:
        head = read_head()
        try:
            return read(head)
        except (InputError, OSError):
            if read_head()["data"] == head["data"]:
                raise


@contextmanager
def exclusive(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Let one process at a time into this block. The lock on `path` ends with the block, or with the process.

    Yields False if the system or the file system has no locks. Without `wait`, a lock that another process holds raises
    a BlockingIOError.
    """
    handle, locked = None, False
    if fcntl is not None:
        handle = os.open(path, os.O_RDONLY)
    try:
        if handle is not None:
            locked = _lock(handle, wait=wait)
        yield locked
    finally:
        if handle is not None:
            os.close(handle)  # releases the lock


def _lock(handle: int, *, wait: bool) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except OSError:  # some network file systems
        return False
    return True


def sweep(folder: Path) -> None:
    """Remove the partial files and folders that killed processes left in a folder."""
    for path in folder.glob(f"{_PARTIAL}*"):
        with contextlib.suppress(OSError), exclusive(path, wait=False) as locked:
            if locked:
                _remove(path)


@contextmanager
def _partial(parent: Path, make: Callable[[Path], None], suffix: str = "") -> Iterator[Path]:
    """Yield a new partial file or folder, locked within the block and removed at its end unless it was renamed."""
    with contextlib.ExitStack() as stack:
        while True:
            path = parent / f"{_PARTIAL}{uuid.uuid4().hex[:8]}{suffix}"
            make(path)
            stack.callback(_remove, path)
            with contextlib.suppress(BlockingIOError, FileNotFoundError):
                stack.enter_context(exclusive(path, wait=False))
                if path.exists():  # a sweep between the last two lines may have removed it
                    break
        yield path


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def sync(path: str | os.PathLike[str]) -> None:
    """Put a file, or the entries of a folder, on the disk (fsync)."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:
        if Path(path).is_dir():
            return  # Windows cannot open folders, and some folders are writable but not readable
        raise
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_tree(folder: Path) -> None:
    for parent, _, files in os.walk(folder):
        for name in files:
            sync(Path(parent, name))
        sync(parent)


def sha256_of(path: Path) -> str:
    """The sha256 of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def checksums(folder: Path) -> dict[str, dict[str, Any]]:
    """Size and sha256 of every file below a folder, by its relative path."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256_of(path)} for path in files
    }


def check_files(folder: Path, files: dict[str, dict[str, Any]], *, verify: bool = True) -> None:
    """Compare files with their `checksums`; an InputError names the first that is missing or damaged.

    verify   False: compare sizes alone, without reading the files
    """
    for name, expected in files.items():
        path = folder / name
        if not path.is_file():
            raise InputError("is missing", path=path, remedy=_COPY_AGAIN)
        size = path.stat().st_size
        if size != expected["bytes"]:
            problem = f"is damaged: it has {size:,} bytes instead of {expected['bytes']:,}"
            raise InputError(problem, path=path, remedy=_COPY_AGAIN)
        if verify and sha256_of(path) != expected["sha256"]:
            raise InputError("is damaged: its checksum differs", path=path, remedy=_COPY_AGAIN)
