"""Warnings that point to the user's code."""

from __future__ import annotations

import os
import sys
import warnings

_FOLDER = os.path.join(os.path.dirname(__file__), "")
"""The folder of the package."""


def warn(text: str) -> None:
    """Issue a warning that points to the nearest caller outside the package."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_FOLDER):
        frame = frame.f_back
        level += 1
    warnings.warn(text, stacklevel=level)
