from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from recbias.core.dataset import Attributes
from recbias.core.errors import NothingLeft, OutOfRange, UnknownColumn
from recbias.core.evidence import Evidence
from recbias.metrics.labels import LabelledItems
from support.worlds.evidence_worlds import make_user_queries, make_vocabulary

NAN = math.nan
# drama: labelled, graded, missing; comedy: graded, no; the last item has no genre
FILMS: dict[str, list[Any]] = {
    "label": [1.0, 0.4, NAN, 0.0, 1.0],
    "genres": ["Drama", "Drama|Comedy", "Drama", "Comedy", None],
}


def make_catalogue(**columns: list[Any]) -> Evidence:
    ids = make_vocabulary("i", len(next(iter(columns.values()))))
    items = Attributes(ids, pd.DataFrame(columns))
    return Evidence(make_user_queries(0), ids, items=items, metric="the metric", n_bootstrap=200)


def measure(of: Evidence, **settings: Any) -> dict[str, tuple[float, int, int]]:
    measurements = LabelledItems(label="label", **settings).measure(of)
    return {row.target: (row.value, row.n, row.undefined) for row in measurements}


def test_counts_by_hand() -> None:
    films = make_catalogue(**FILMS)
    assert measure(films) == {"": (3, 4, 1)}
    assert measure(films, threshold=0.5, attribute="genres") == {
        "": (2, 4, 1),
        "genres=Comedy": (0, 2, 0),
        "genres=Drama": (1, 2, 1),
    }


def test_shares_have_wilson_intervals() -> None:
    films = make_catalogue(**FILMS)
    assert measure(films, form="share", attribute="genres") == {
        "": (0.75, 4, 1),
        "genres=Comedy": (0.5, 2, 0),
        "genres=Drama": (1.0, 2, 1),
    }
    share, *_ = LabelledItems(label="label", form="share").measure(films)
    # Wilson: (3 + z²/2 ± z √(3 · 1/4 + z²/4)) / (4 + z²), with z² = 3.8415
    assert (share.ci_low, share.ci_high) == pytest.approx((0.3006, 0.9544), abs=1e-4)
    count, *_ = LabelledItems(label="label").measure(films)
    assert math.isnan(count.ci_low)


@pytest.mark.parametrize(
    ("columns", "settings", "error"),
    [
        ({"label": [2.0]}, {}, OutOfRange),
        ({"label": [NAN]}, {}, NothingLeft),
        ({"other": [1.0]}, {}, UnknownColumn),
        ({"label": [1.0]}, {"attribute": "genres"}, UnknownColumn),
    ],
)
def test_unusable_columns_are_errors(columns: Any, settings: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        LabelledItems(label="label", **settings).check(make_catalogue(**columns))
