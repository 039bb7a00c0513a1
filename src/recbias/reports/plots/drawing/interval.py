"""An estimate with its interval, as it is drawn."""

from __future__ import annotations

from dataclasses import dataclass

from recbias.reports.plots.drawing import svg


@dataclass(frozen=True)
class Interval:
    """A figure with its 95% interval, NaN where there is none."""

    value: float
    low: float
    high: float

    def ends(self) -> list[float]:
        """Return the figures that an axis must reach."""
        return list(filter(svg.fits_axis, (self.value, self.low, self.high)))
