"""The progress bar you see during long work."""

from __future__ import annotations

import re
import time

import pytest

from halation.cli._console import progress_bar


def test_the_bar_shows_the_rate_and_the_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes anything for a terminal
    monkeypatch.setenv("COLUMNS", "120")
    with progress_bar() as progress:
        for done in range(0, 501, 50):  # a resumed run begins at 400: those must not count as speed
            progress("images", 400 + done // 10, 1000)
            time.sleep(0.02)
        time.sleep(0.15)  # drawn ten times a second
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    rates = [float(rate.replace(",", "")) for rate in re.findall(r"([\d,.]+)/s", shown)]
    assert "images" in shown and "450/1000" in shown and re.search(r"\d:\d\d:\d\d", shown)
    assert rates and max(rates) < 1000  # 5 every 20 ms at most; 400 at once would be tens of thousands


def test_without_a_terminal_there_is_no_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    with progress_bar() as progress:
        progress("images", 1, 2)
    assert not capsys.readouterr().err.strip()
