"""Drawing: figures as small files, since they are kept with the results."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

COLORS = 96


def save(figure: Figure, path: Path, dpi: int = 100) -> Path:
    """Write a figure as a PNG with a palette: a third of the size, and no difference to the eye."""
    made = BytesIO()
    figure.savefig(made, format="png", dpi=dpi)
    Image.open(made).convert("RGB").quantize(COLORS).save(path, optimize=True)
    return path
