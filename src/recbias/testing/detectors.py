"""The contract of a detector."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.protocols import Detector
from recbias.core.stage_context import collect_warnings
from recbias.testing.declared import check_dataclass, refuse
from recbias.testing.small_world import make_checkerboard


@collect_warnings()
def check_detector(detector: Detector, *, items: Attributes | None = None) -> None:
    """Check that a detector meets the contract of its kind.

    It is a documented frozen dataclass; it returns a column for each of its kinds, and besides
    them only graded columns ``KIND_score``; labels are 0, 1 or NaN; with the same generator it
    returns the same labels, and the order of the items does not matter.

    Args:
        detector: The detector with its settings.
        items: The items to label, by default those of ``make_checkerboard()``, with the columns
            ``genres``, ``price`` and ``flag``.

    Raises:
        BrokenContract: It violates a rule.

    Example:
        check_detector(MyDetector(column="price"))
    """
    name = type(detector).__name__
    check_dataclass(detector, ("libraries", "kinds", "label"), name)
    kinds = detector.kinds
    refuse(not kinds or len(set(kinds)) < len(kinds), name, "has no kinds, or one of them twice")
    table = make_checkerboard().items if items is None else items
    refuse(table is None, name, "has no items to label")
    if table is None:
        return
    columns = dict(detector.label(table, np.random.default_rng(0)))
    for kind in kinds:
        refuse(kind not in columns, name, f"returns no column {kind}")
    for column, values in columns.items():
        _check_column(column, values, len(table.ids), kinds, name)
    again = dict(detector.label(table, np.random.default_rng(0)))
    refuse(not _are_equal(columns, again), name, "returns other labels the second time")
    order = np.arange(len(table.ids))[::-1]
    reverse = detector.label(table.take(order, table.ids.take(order)), np.random.default_rng(0))
    restored = {column: values[order] for column, values in reverse.items()}
    refuse(not _are_equal(columns, restored), name, "depends on the order of the items")


def _check_column(
    column: str, values: FloatArray, n_items: int, kinds: tuple[str, ...], name: str
) -> None:
    graded = column.endswith("_score") and column.removesuffix("_score") in kinds
    refuse(column not in kinds and not graded, name, f"returns the column {column} of no kind")
    shape = f"{values.dtype}{list(values.shape)}"
    refuse(shape != f"float64[{n_items}]", name, f"returns {column} as {shape}")
    invalid = ~np.isnan(values) & (values != 0) & (values != 1)
    refuse(not graded and invalid.any(), name, f"returns labels {column} other than 0, 1 and NaN")


def _are_equal(columns: dict[str, FloatArray], repeated: dict[str, FloatArray]) -> bool:
    return columns.keys() == repeated.keys() and all(
        np.array_equal(values, repeated[column], equal_nan=True)
        for column, values in columns.items()
    )
