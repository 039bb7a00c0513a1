"""The counts of Shen et al. 2022 (Tables 2 and 4), on small data with the label of a city."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import recbias


def test_counts_of_a_city_are_compared(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(
        "item_id,categories,price\na,Bars|Pizza|Cafes,$\nb,Bars,$$\nc,Food,$\nd,Food,$\n",
        encoding="utf-8",
    )
    (tmp_path / "reviews.csv").write_text(
        "user_id,item_id\nu,a\nu,b\nu,c\nv,a\nv,d\nw,a\n", encoding="utf-8"
    )
    dataset = {"name": "tables", "label": "Boston", "items": str(tmp_path / "items.csv")}
    spec = {
        "name": "counts",
        "dataset": dataset | {"interactions": str(tmp_path / "reviews.csv")},
        "split": {"name": "random", "test": 0.2},
        "models": ["MostPop"],
        "metrics": [
            {"name": "catalogue_counts", "attribute": "categories"},
            {"name": "attribute_share", "attribute": "price", "of": "items"},
        ],
        "report": {"reference": ["lmrec/2", "lmrec/4"], "formats": ["csv"]},
    }
    run = recbias.run(spec, out=tmp_path / "results")
    reference = pd.read_csv(run.folder / "reference.csv").set_index("metric")
    # 6 reviews of 4 places in Bars, Pizza, Cafes and Food; 3 of a, which has 3 categories
    assert reference["measured"].to_dict() == pytest.approx(
        {
            "n_reviews (Boston)": 6,
            "n_businesses (Boston)": 4,
            "max_reviews_of_one_business (Boston)": 3,
            "n_categories (Boston)": 4,
            "max_categories_per_business (Boston)": 3,
            "percentage of businesses ($, Boston)": 75,
            "percentage of businesses ($$, Boston)": 25,
        }
    )
    assert reference["published"]["n_reviews (Boston)"] == 462026
    assert reference["published"]["percentage of businesses ($$, Boston)"] == 58.190
