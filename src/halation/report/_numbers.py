"""Numbers as a page writes them."""

from __future__ import annotations

__all__ = ["plain", "signed"]


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
