"""Numbers as a page writes them."""

from __future__ import annotations

__all__ = ["figures", "percent", "plain", "signed"]


def plain(value: float, digits: int = 1) -> str:
    """A number with a true minus, and none before zero.

    >>> plain(-3.14159), plain(-0.04), plain(12.0)
    ('−3.1', '0.0', '12.0')
    """
    text = f"{value:.{digits}f}"
    return text.replace("-", "" if float(text) == 0 else "−")


def signed(value: float, digits: int = 1) -> str:
    """A difference: with its sign, and none where it is nothing.

    >>> signed(2.0), signed(-2.0), signed(-0.04), signed(0.04)
    ('+2.0', '−2.0', '0.0', '0.0')
    """
    text = plain(value, digits)
    return f"+{text}" if value > 0 and float(text) != 0 else text


def figures(value: float, digits: int = 4) -> str:
    """A number of so many figures, whatever its size, with a true minus, and none before zero.

    >>> figures(0.123456), figures(-0.5), figures(-0.0), figures(1e-7)
    ('0.1235', '−0.5', '0', '1e−07')
    """
    return f"{value + 0.0:.{digits}g}".replace("-", "−")


def percent(probability: float) -> str:
    """As the search page says it.

    >>> percent(0.834), percent(0.9999), percent(0.001)
    ('83 %', '> 99 %', '< 1 %')
    """
    return "> 99 %" if probability >= 0.995 else "< 1 %" if probability < 0.005 else f"{100 * probability:.0f} %"
