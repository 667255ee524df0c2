"""The change from one index to the next: nothing is closed under a search, and nothing stays open after it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import halation.search
from halation._errors import InputError
from halation.serve import create_app
from halation.serve._refusals import Refusal, message_for_client
from halation.serve._served_index import Searcher, ServedIndex
from halation.serve._server_metrics import ServerMetrics
from serving import WordSearch, awaited, scenes


class Closing(WordSearch):
    """A search that knows whether it was closed."""

    closed = False

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def opened(drawn: Path) -> list[Closing]:
    return [Closing(drawn, scenes(drawn).captions) for _ in range(3)]


def live_over(opened: list[Closing]) -> ServedIndex:
    following = iter(opened[1:])
    return ServedIndex(opened[0], lambda: next(following), ServerMetrics())


def test_an_old_index_is_closed_when_its_last_search_has_ended(opened: list[Closing]) -> None:
    live, begun, release = live_over(opened), threading.Barrier(3), threading.Event()

    def work(search: Searcher) -> Searcher:
        begun.wait(10)
        assert release.wait(10)
        assert not search.closed  # type: ignore[attr-defined]
        return search

    with ThreadPoolExecutor(2) as pool:
        under_way = [pool.submit(live.call, work) for _ in range(2)]
        begun.wait(10)
        assert awaited(live.reload()) == 2
        assert not opened[0].closed and live.call(lambda search: search) is opened[1]
        release.set()
        assert [each.result() for each in under_way] == [opened[0]] * 2
    assert opened[0].closed and not opened[1].closed


def test_an_idle_index_is_closed_at_once(opened: list[Closing]) -> None:
    live = live_over(opened)
    with pytest.raises(ZeroDivisionError):
        live.call(lambda search: 1 // 0)
    for generation in (2, 3):
        assert awaited(live.reload()) == generation
    assert [search.closed for search in opened] == [True, True, False]


def test_an_index_that_does_not_close_is_no_reason_to_fail(
    opened: list[Closing], caplog: pytest.LogCaptureFixture
) -> None:
    live = live_over(opened)
    opened[0].close = lambda: 1 / 0  # type: ignore[assignment,method-assign]
    assert awaited(live.reload()) == 2
    assert "an old index was not closed" in caplog.text


def test_an_index_is_served_when_all_it_needs_is_loaded(
    opened: list[Closing], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    following, warmed = iter(opened), []
    for search in opened:
        search.warm = lambda search=search: warmed.append(search)  # type: ignore[attr-defined]
    monkeypatch.setattr(halation.search, "open_search", lambda folder, run: next(following), raising=False)
    app = create_app(tmp_path)
    assert warmed == opened[:1]
    awaited(app.state.index.reload())
    assert warmed == opened[:2] and app.state.index.current is opened[1]


ABOVE = ["of ann and bob/all", "Ann's pictures", "pictures (2)", "plain"]


@pytest.mark.parametrize("above", ABOVE)
@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("the index/items.sqlite", "the index/items.sqlite holds no a/b; copy it again"),
        ("the index", "the index holds no a/b; copy it again"),
        ("runs/the run", "the run holds no a/b; copy it again"),
    ],
)
def test_what_is_wrong_with_a_new_index_is_said_without_the_folders_of_the_disk(
    opened: list[Closing], tmp_path: Path, above: str, path: str, wanted: str
) -> None:
    def reopen() -> Searcher:
        raise InputError(
            "holds no a/b", path=tmp_path / above / path, remedy="copy it again", argument="run", value=str(tmp_path)
        )

    live = ServedIndex(opened[0], reopen, ServerMetrics(), [tmp_path / above / "the index"])
    with pytest.raises(Refusal) as refusal:
        awaited(live.reload())
    assert str(refusal.value) == f"the index was not reloaded, the old one stays in use: {wanted}"


@pytest.mark.parametrize("above", ABOVE)
def test_what_the_system_says_of_a_file_is_repeated_without_its_folders(above: str, tmp_path: Path) -> None:
    with pytest.raises(OSError) as missing:
        (tmp_path / above / "items.sqlite").open()
    assert message_for_client(missing.value, []) == "items.sqlite: No such file or directory"
    assert message_for_client(OSError("/home/ann/x"), []) == "it cannot be read"
