"""The project's pictures, as self-contained SVG text: the overlap timeline of the demo and the throughput charts of the
benchmarks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

FONT = "font-family=\"'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif\""
INK, FAINT, GRID, PAPER = "#1f2933", "#616e7c", "#e4e7eb", "#ffffff"


class Canvas:
    """Collects shapes; coordinates in pixels, origin at the top left."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._parts = [f'<rect width="{width:g}" height="{height:g}" rx="8" fill="{PAPER}"/>']

    def rect(self, x: float, y: float, width: float, height: float, fill: str, radius: float = 0) -> None:
        rounded = f' rx="{radius:g}"' if radius else ""
        self._parts.append(f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}"{rounded} '
                           f'fill="{fill}"/>')

    def line(self, x1: float, y1: float, x2: float, y2: float, stroke: str, width: float = 1, dash: str = "") -> None:
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self._parts.append(f'<line x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" stroke="{stroke}" '
                           f'stroke-width="{width:g}"{dashed}/>')

    def path(self, points: list[tuple[float, float]], stroke: str, width: float = 2, dash: str = "") -> None:
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        coordinates = " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
        self._parts.append(f'<polyline points="{coordinates}" fill="none" stroke="{stroke}" stroke-width="{width:g}" '
                           f'stroke-linejoin="round"{dashed}/>')

    def dot(self, x: float, y: float, fill: str, radius: float = 4) -> None:
        self._parts.append(f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{radius:g}" fill="{fill}" stroke="{PAPER}"/>')

    def text(self, x: float, y: float, text: str, size: float = 12, fill: str = INK, anchor: str = "start",
             bold: bool = False) -> None:
        weight = ' font-weight="600"' if bold else ""
        self._parts.append(f'<text x="{x:.2f}" y="{y:.2f}" font-size="{size:g}" fill="{fill}" '
                           f'text-anchor="{anchor}"{weight}>{escape(text)}</text>')

    def rotated(self, x: float, y: float, text: str, size: float = 12, fill: str = FAINT) -> None:
        self._parts.append(f'<text transform="translate({x:.2f} {y:.2f}) rotate(-90)" font-size="{size:g}" '
                           f'fill="{fill}" text-anchor="middle">{escape(text)}</text>')

    def svg(self, title: str) -> str:
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" '
                f'width="{self.width:g}" height="{self.height:g}" role="img" {FONT}>')
        return "\n".join([head, f"<title>{escape(title)}</title>", *self._parts, "</svg>\n"])


def tick_step(span: float, ticks_max: int) -> float:
    """The smallest of 1, 2, 5 times a power of ten that divides `span` into at most `ticks_max` parts."""
    if span <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(span / ticks_max))
    return next(power * m for m in (1, 2, 5, 10, 20) if span / (power * m) <= ticks_max)


# ---- timeline -------------------------------------------------------------------------------------------------------

Interval = tuple[float, float]  # seconds from the start of the run

COMPUTE, VISIBLE, BACKGROUND = "#a9bdd6", "#d9482b", "#3f9d6b"


@dataclass
class Rank:
    compute: list[Interval] = field(default_factory=list)
    visible: list[Interval] = field(default_factory=list)  # in I/O calls
    background: list[Interval] = field(default_factory=list)  # drained behind the program


@dataclass
class Run:
    title: str
    note: str
    run_s: float
    ranks: list[Rank]


def merged(intervals: list[Interval], gap: float) -> list[Interval]:
    """The intervals in order, those that overlap or are closer than `gap` made one."""
    out: list[Interval] = []
    for start, end in sorted(intervals):
        if out and start - out[-1][1] <= gap:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out


def timeline(title: str, note: str, runs: list[Run]) -> str:
    """One panel per run, one row per rank, all on the same time axis."""
    left, right, top = 74.0, 26.0, 96.0
    bar, thin, row_gap, panel_head, panel_gap = 17.0, 7.0, 7.0, 30.0, 26.0
    width = 1000.0
    span = max(run.run_s for run in runs)
    scale = (width - left - right) / (span * 1.02)
    row = [bar + (thin + 1 if any(rank.background for rank in run.ranks) else 0) + row_gap for run in runs]
    heights = [panel_head + len(run.ranks) * step for run, step in zip(runs, row)]
    bottom = top + sum(heights) + panel_gap * (len(runs) - 1)
    canvas = Canvas(width, bottom + 58)
    canvas.text(24, 36, title, 19, bold=True)
    canvas.text(24, 57, note, 12.5, FAINT)

    x = 24.0
    for colour, label in ((COMPUTE, "computing"), (VISIBLE, "waiting in I/O calls"),
                          (BACKGROUND, "written in the background")):
        canvas.rect(x, 72, 12, 12, colour, 2)
        canvas.text(x + 18, 82, label, 12)
        x += 36 + 6.6 * len(label)

    step = tick_step(span, 10)
    for i in range(int(span * 1.02 / step) + 1):
        at = left + i * step * scale
        canvas.line(at, top, at, bottom, GRID)
        canvas.text(at, bottom + 18, f"{i * step:g}", 11, FAINT, "middle")
    canvas.text(left + (width - left - right) / 2, bottom + 40, "seconds since the start", 12, FAINT, "middle")

    y = top
    for run, step_y, height in zip(runs, row, heights):
        canvas.text(24, y + 18, run.title, 14, bold=True)
        canvas.text(width - right, y + 18, run.note, 12.5, FAINT, "end")
        for number, rank in enumerate(run.ranks):
            line = y + panel_head + number * step_y
            canvas.text(left - 10, line + bar - 4, f"rank {number}", 11.5, FAINT, "end")
            for intervals, colour, offset, thick in ((rank.compute, COMPUTE, 0.0, bar),
                                                     (rank.visible, VISIBLE, 0.0, bar),
                                                     (rank.background, BACKGROUND, bar + 1, thin)):
                for start, end in merged(intervals, 0.4 / scale):
                    # A thing that happened is seen, however short.
                    canvas.rect(left + start * scale, line + offset, max((end - start) * scale, 0.8), thick, colour)
        end = left + run.run_s * scale
        canvas.line(end, y + panel_head - 4, end, y + height - row_gap + 4, INK, 1.5)
        y += height + panel_gap
    return canvas.svg(title)


# ---- throughput charts ----------------------------------------------------------------------------------------------


@dataclass
class Point:
    x: int
    low: float
    middle: float
    high: float


@dataclass
class Series:
    label: str
    colour: str
    points: list[Point]
    dash: str = ""


@dataclass
class Chart:
    title: str
    series: list[Series]


def throughput(title: str, note: str, charts: list[Chart], unit: str, x_label: str) -> str:
    """Charts in two columns, logarithmic throughput over a few numbers of ranks; bars from lowest to highest."""
    columns, cell_width, cell_height = 2, 480.0, 300.0
    inner_left, inner_top, inner_width, inner_height = 64.0, 34.0, 390.0, 210.0
    rows = (len(charts) + columns - 1) // columns
    labels = {series.label: series for chart in charts for series in chart.series}
    canvas = Canvas(columns * cell_width + 24, 104 + rows * cell_height)
    canvas.text(24, 36, title, 19, bold=True)
    canvas.text(24, 57, note, 12.5, FAINT)
    x = 24.0
    for series in labels.values():
        canvas.line(x, 78, x + 22, 78, series.colour, 2.5, series.dash)
        canvas.dot(x + 11, 78, series.colour, 3.5)
        canvas.text(x + 28, 82, series.label, 12)
        x += 46 + 6.5 * len(series.label)

    points = [p for chart in charts for s in chart.series for p in s.points]
    places = sorted({p.x for p in points})
    values = [value for p in points for value in (p.low, p.high) if value > 0]
    floor = 10 ** (math.floor(math.log10(min(values)) * 3) / 3)
    ceiling = 10 ** (math.ceil(math.log10(max(values)) * 3) / 3)
    for number, chart in enumerate(charts):
        origin_x = 12 + (number % columns) * cell_width + inner_left
        origin_y = 96 + (number // columns) * cell_height + inner_top

        def y_of(value: float, base: float = origin_y) -> float:
            part = (math.log10(max(value, floor)) - math.log10(floor)) / (math.log10(ceiling) - math.log10(floor))
            return base + inner_height * (1 - part)

        canvas.text(origin_x, origin_y - 14, chart.title, 13.5, bold=True)
        for power in range(math.floor(math.log10(floor)), math.ceil(math.log10(ceiling)) + 1):
            for multiple in (1, 2, 5):
                value = multiple * 10.0 ** power
                if floor <= value <= ceiling:
                    canvas.line(origin_x, y_of(value), origin_x + inner_width, y_of(value), GRID)
                    canvas.text(origin_x - 8, y_of(value) + 4, f"{value:,.0f}", 11, FAINT, "end")
        canvas.rotated(origin_x - 54, origin_y + inner_height / 2, unit)
        at = {x: origin_x + inner_width * (i + 0.5) / len(places) for i, x in enumerate(places)}
        for x, place in at.items():
            canvas.text(place, origin_y + inner_height + 18, str(x), 11, FAINT, "middle")
        canvas.text(origin_x + inner_width / 2, origin_y + inner_height + 36, x_label, 12, FAINT, "middle")
        canvas.line(origin_x, origin_y + inner_height, origin_x + inner_width, origin_y + inner_height, FAINT)
        for index, series in enumerate(chart.series):
            shift = (index - (len(chart.series) - 1) / 2) * 3  # so that bars do not hide each other
            canvas.path([(at[p.x] + shift, y_of(p.middle)) for p in series.points], series.colour, 2, series.dash)
            for p in series.points:
                canvas.line(at[p.x] + shift, y_of(p.low), at[p.x] + shift, y_of(p.high), series.colour, 1.5)
                canvas.dot(at[p.x] + shift, y_of(p.middle), series.colour)
    return canvas.svg(title)
