"""Pictures and tables of results."""

from __future__ import annotations

import html
import importlib
from os import PathLike
from typing import Any

from traxtent import _traxtent
from traxtent._traxtent import Result


class SvgPicture:
    """A picture in SVG, which notebooks show: the result of `Result.plot` without matplotlib.

    Attributes:
        text: The picture.

    """

    def __init__(self, text: str) -> None:
        """Keep the picture."""
        self.text = text

    def _repr_svg_(self) -> str:
        return self.text

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture to a file, which gets its name once it is complete.

        Raises:
            InputError: The file exists and is not a picture.
            FileError: The file cannot be written.

        """
        _traxtent.save_picture(path, self.text)


def plot(result: Result, ax: Any, log_x: bool, log_y: bool) -> Any:
    """Draw the distribution of response times with matplotlib, or as SVG without it."""
    name = f"{result.drive.target}, {result.workload}"
    is_own = ax is None
    if ax is None:
        try:
            pyplot = importlib.import_module("matplotlib.pyplot")
        except ImportError:
            return SvgPicture(result.to_svg(log_x=log_x, log_y=log_y))
        ax = pyplot.subplots()[1]
    points = list(result.distribution)
    # The curve rises from zero at the fastest request, even if many are equally fast.
    points = [(time, 0.0) for time, _ in points[:1]] + points
    if log_y:
        # No request is slower than the slowest, and a logarithmic axis has no zero.
        points = [(time, 1 - share) for time, share in points if share < 1]
        ax.set_yscale("log")
    times, shares = [time for time, _ in points], [share for _, share in points]
    if log_x:
        ax.set_xscale("log")
    ax.step(times, shares, where="post", label=name)
    ax.set_xlabel("response time, ms")
    ax.set_ylabel("share of slower requests" if log_y else "share of requests")
    if is_own:
        ax.set_title(name)
    else:
        ax.legend()
    return ax


def to_html(result: Result) -> str:
    """Return the figures as an HTML table, followed by the plot of the distribution."""
    rows = []
    for key, value in result.summary.items():
        if isinstance(value, dict):
            cell = ", ".join(f"{name} {number(part)}" for name, part in value.items())
        else:
            cell = number(value)
        rows.append(f"<tr><th>{html.escape(key)}</th><td>{html.escape(cell)}</td></tr>")
    return f"<table>{''.join(rows)}</table>{result.to_svg()}"


def number(value: object) -> str:
    """Return a value as text; a float has four significant digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
