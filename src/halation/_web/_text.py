"""Numbers and notes formatted for pages. Numbers have a true minus sign, and zero has none."""

from __future__ import annotations

__all__ = ["percent", "plain", "sentence", "signed", "significant"]


def plain(value: float, digits: int = 1) -> str:
    """A number with a fixed number of decimals.

    >>> plain(-3.14159), plain(-0.04), plain(12.0)
    ('−3.1', '0.0', '12.0')
    """
    text = f"{value:.{digits}f}"
    return text.replace("-", "" if float(text) == 0 else "−")


def signed(value: float, digits: int = 1) -> str:
    """A difference with its sign; 0 has none.

    >>> signed(2.0), signed(-2.0), signed(-0.04), signed(0.04)
    ('+2.0', '−2.0', '0.0', '0.0')
    """
    text = plain(value, digits)
    return f"+{text}" if value > 0 and float(text) != 0 else text


def significant(value: float, digits: int = 4) -> str:
    """A number with at most this many significant digits.

    >>> significant(0.123456), significant(-0.5), significant(-0.0), significant(1e-7)
    ('0.1235', '−0.5', '0', '1e−07')
    """
    return f"{value + 0.0:.{digits}g}".replace("-", "−")


def percent(probability: float) -> str:
    """A probability in whole percent.

    >>> percent(0.834), percent(0.9999), percent(0.001)
    ('83 %', '> 99 %', '< 1 %')
    """
    return "> 99 %" if probability >= 0.995 else "< 1 %" if probability < 0.005 else f"{100 * probability:.0f} %"


def sentence(note: str) -> str:
    """A note with a capital letter and a full stop.

    >>> sentence("the run is not calibrated")
    'The run is not calibrated.'
    """
    return f"{note[:1].upper()}{note[1:].rstrip('.')}."
