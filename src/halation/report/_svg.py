"""Small figures as SVG. Text stays text, and colours come from the page, so that they follow its theme."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from halation._web import Markup, tag
from halation.report._facts import Bars, Histogram, Line

__all__ = ["Axes", "bars", "histograms", "lines", "ticks", "whisker"]

LEFT, RIGHT, TOP, BOTTOM = 46, 20, 28, 38


@dataclass(frozen=True)
class Axes:
    """The labels and the size of a figure. A log axis needs x > 0; `low` and `high` fix the y axis.

    diagonal   draw a dashed diagonal, with the same x axis as y axis
    whole_x    x is a count: ticks at whole numbers only
    """

    title: str
    x: str
    y: str
    width: int = 420
    height: int = 260
    log_x: bool = False
    low: float | None = None
    high: float | None = None
    diagonal: bool = False
    whole_x: bool = False


@dataclass(frozen=True)
class _Scale:
    """From a number to a position in the drawing."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        a, b, v = (math.log10(x) if self.log else x for x in (self.low, self.high, value))
        return round(self.start + (v - a) / ((b - a) or 1) * (self.stop - self.start), 1)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers from low to high.

    >>> ticks(0.13, 0.94)
    [0.2, 0.4, 0.6, 0.8]
    """
    span = high - low
    if not span > 0:
        return [low]
    raw = span / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * k for k in (1, 2, 2.5, 5, 10) if power * k >= raw * 0.75)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def lines(series: Sequence[Line], axes: Axes, *, points: bool = False) -> Markup:
    """A line chart; `points` marks each value and gives it a tooltip.

    If there are two runs, the line of run 0 is drawn last and dashed, so that you can see a line of run 1 below it.
    """
    xs = [x for line in series for x in line.x]
    ys = [y for line in series for y in line.y]
    top = max(ys) if axes.high is None else axes.high
    least = min(ys) if axes.low is None else axes.low
    pad = 0.06 * (top - least) or 0.5
    ends = least if axes.low is not None else least - pad, top if axes.high is not None else top + pad
    across, up = _scales(axes, ends if axes.diagonal else (min(xs), max(xs)), ends)
    marks: list[Markup] = []
    if axes.diagonal:
        corners = {"x1": across(ends[0]), "y1": up(ends[0]), "x2": across(ends[1]), "y2": up(ends[1])}
        marks.append(tag("line", class_="diagonal", **corners))
    over = not axes.diagonal and {0, 1} <= {line.run for line in series}  # two runs, whose lines may be equal
    for line in sorted(series, key=lambda line: -line.run):
        path = "".join(
            f"{'L' if k else 'M'}{across(x)} {up(y)}" for k, (x, y) in enumerate(zip(line.x, line.y, strict=True))
        )
        marks.append(tag("path", class_=f"line s{line.run}{' over' if over and line.run == 0 else ''}", d=path))
        radius = 3.8 if over and line.run == 1 else 2.6
        if points:
            for x, y in zip(line.x, line.y, strict=True):
                tooltip = tag("title", f"{line.name}: {axes.x} {short(x)}, {axes.y} {short(y)}")
                marks.append(tag("circle", tooltip, class_=f"dot s{line.run}", cx=across(x), cy=up(y), r=radius))
    return _framed(axes, across, up, marks)


def histograms(series: Sequence[Histogram], axes: Axes) -> Markup:
    """Outlines of histograms over common bins, each in percent of its total."""
    shares = [[count / (sum(one.counts) or 1) * 100 for count in one.counts] for one in series]
    edges = series[0].edges
    across, up = _scales(axes, (edges[0], edges[-1]), (0, 1.08 * max((max(share) for share in shares), default=1) or 1))
    marks = []
    for number, heights in enumerate(shares):
        path = f"M{across(edges[0])} {up(0)}"
        for k, share in enumerate(heights):
            path += f"V{up(share)}H{across(edges[k + 1])}"
        marks.append(tag("path", class_=f"area s{number}", d=f"{path}V{up(0)}Z"))
    return _framed(axes, across, up, marks)


def bars(series: Sequence[Bars], axes: Axes, labels: Sequence[str]) -> Markup:
    """Groups of bars with intervals."""
    highest = max(high for one in series for high in one.high)
    across, up = _scales(axes, (0, len(labels)), (0, min(100.0, 1.1 * highest) or 1))
    wide = 0.72 / len(series)
    marks = []
    for number, one in enumerate(series):
        for k, (value, low, high) in enumerate(zip(one.values, one.low, one.high, strict=True)):
            left, right = across(k + 0.14 + number * wide), across(k + 0.14 + (number + 0.9) * wide)
            sigma = f"σ {short(one.ranges[k][0])} to {short(one.ranges[k][1])}"
            tooltip = f"{one.name}, {labels[k]} ({sigma}): {value:.1f} % [{low:.1f}, {high:.1f}] of {one.sizes[k]:,}"
            box = {"x": left, "y": up(value), "width": round(right - left, 1), "height": round(up(0) - up(value), 1)}
            middle = round((left + right) / 2, 1)
            marks.append(tag("rect", tag("title", tooltip), class_=f"pillar s{one.run}", **box))
            marks.append(tag("path", class_="whisker", d=f"M{middle} {up(low)}V{up(high)}"))
    names = [
        tag("text", label, x=across(k + 0.5), y=axes.height - BOTTOM + 16, class_="tick", text_anchor="middle")
        for k, label in enumerate(labels)
    ]
    return _framed(axes, across, up, [*marks, *names], x_ticks=False)


def whisker(value: float, low: float, high: float, limit: float) -> Markup:
    """A difference and its interval on a line from −limit to limit, 0 in the middle."""
    across = _Scale(-limit, limit, 4, 116)
    ends = [across(min(max(end, -limit), limit)) for end in (low, high)]
    return tag(
        "svg",
        tag("path", class_="zero", d="M60 1V15"),
        tag("path", class_="reach", d=f"M{ends[0]} 8H{ends[1]}"),
        tag("circle", class_="spot", cx=across(min(max(value, -limit), limit)), cy=8, r=3.4),
        viewbox="0 0 120 16",
        class_="whiskers",
        aria_hidden="true",
    )


def short(value: float) -> str:
    """A number in few digits.

    >>> short(1234567.0), short(0.12345), short(50.0), short(12000.0), short(-0.0)
    ('1.2M', '0.123', '50', '12k', '0')
    """
    value += 0.0  # no negative zero
    if abs(value) >= 1e6:
        return f"{value / 1e6:.3g}M" if value % 1e6 == 0 else f"{value / 1e6:.2g}M"
    if abs(value) >= 1e4:
        return f"{value / 1e3:.3g}k"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _scales(axes: Axes, x: tuple[float, float], y: tuple[float, float]) -> tuple[_Scale, _Scale]:
    return (
        _Scale(x[0], x[1], LEFT, axes.width - RIGHT, axes.log_x),
        _Scale(y[0], y[1], axes.height - BOTTOM, TOP),
    )


def _framed(axes: Axes, across: _Scale, up: _Scale, marks: Sequence[Markup], *, x_ticks: bool = True) -> Markup:
    bottom, right = axes.height - BOTTOM, axes.width - RIGHT
    grid, text = [], []
    for y in ticks(up.low, up.high, max(3, (bottom - TOP) // 46)):
        grid.append(tag("line", class_="grid", x1=LEFT, x2=right, y1=up(y), y2=up(y)))
        text.append(tag("text", short(y), class_="tick", x=LEFT - 7, y=up(y) + 4, text_anchor="end"))
    text += [
        tag("text", short(x), class_="tick", x=across(x), y=bottom + 16, text_anchor="middle")
        for x in (_x_ticks(across, axes) if x_ticks else ())
    ]
    text.append(tag("text", axes.y, class_="label", x=4, y=11))
    text.append(tag("text", axes.x, class_="label", x=(LEFT + right) / 2, y=axes.height - 5, text_anchor="middle"))
    base = tag("line", class_="axis", x1=LEFT, x2=right, y1=bottom, y2=bottom)
    return tag(
        "svg",
        tag("title", axes.title),
        grid,
        base,
        marks,
        text,
        viewbox=f"0 0 {axes.width} {axes.height}",
        class_="figure",
        role="img",
    )


def _x_ticks(across: _Scale, axes: Axes) -> list[float]:
    if not across.log:
        values = ticks(across.low, across.high, max(2, axes.width // 80))
        return [x for x in values if x == round(x)] if axes.whole_x else values
    powers = range(math.floor(math.log10(across.low)), math.ceil(math.log10(across.high)) + 1)
    values = [10.0**power for power in powers if across.low <= 10.0**power <= across.high * 1.0001]
    return values if len(values) > 1 else [across.low, across.high]
