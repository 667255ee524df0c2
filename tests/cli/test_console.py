"""What a person sees while work goes on."""

from __future__ import annotations

import re
import time

import pytest

from halation.cli._console import progress_bar


def test_the_bar_says_how_many_a_second_and_how_long_still(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes anything for a terminal
    monkeypatch.setenv("COLUMNS", "120")
    with progress_bar() as progress:
        for done in range(0, 501, 50):  # a resumed run begins where it was: that is no speed
            progress("images", 400 + done // 10, 1000)
            time.sleep(0.02)
        time.sleep(0.15)  # drawn ten times a second
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    rates = [float(rate.replace(",", "")) for rate in re.findall(r"([\d,.]+)/s", shown)]
    assert "images" in shown and "450/1000" in shown and re.search(r"\d:\d\d:\d\d", shown)
    assert rates and max(rates) < 1000  # 5 every 20 ms at most; 400 at once would be tens of thousands


def test_where_nobody_watches_there_is_no_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    with progress_bar() as progress:
        progress("images", 1, 2)
    assert not capsys.readouterr().err.strip()
