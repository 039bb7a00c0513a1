from __future__ import annotations

from pathlib import Path

import pytest

from recbias.reports.run import read_run
from recbias.reports.wording import list_warnings
from support.run_folders import RunSpec, make_run


@pytest.mark.parametrize(
    ("warnings", "lines"),
    [
        (["w", "v", "w"], ["w", "v"]),
        (
            ["measure a of X: 3 lost", "measure a of Y: 3 lost", "measure a of Y: 2 lost"],
            ["3 lost (2 stages)", "measure a of Y: 2 lost"],
        ),
    ],
)
def test_a_warning_of_several_stages_is_listed_once(
    tmp_path: Path, warnings: list[str], lines: list[str]
) -> None:
    assert list_warnings(read_run(make_run(tmp_path, RunSpec(warnings=warnings)))) == lines
