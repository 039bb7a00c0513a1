from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recbias.reports import plots as rows
from support.plot_rows import EXPOSURE, make_exposure_units, write_run


def test_undefined_units_are_excluded(tmp_path: Path) -> None:
    units = make_exposure_units(("BERT",), 4)
    units["value"][0] = np.nan
    run = write_run(tmp_path, [EXPOSURE], units=units)
    (metric,) = rows.find_metrics(run, "REC-ST")
    assert len(rows.read_units(run, metric, "ml-1m")) == 3
    (tmp_path / "per_unit.parquet").unlink()
    assert rows.read_units(run, metric, "ml-1m").empty


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        (["race=a&gender=F", "race=b&gender=M"], "race&gender"),
        (["categories=Coffee & Tea", "categories=Bars"], "categories"),
        (["x=1", "y=2"], ""),
        (["age<18", "not age<18"], ""),
        ([], ""),
    ],
)
def test_name_that_labels_share(labels: list[str], name: str) -> None:
    assert rows.get_label_name(labels) == name
