from __future__ import annotations

from pathlib import Path

import pytest

import recbias
from recbias.core.records import StageRecord
from recbias.runner.execute import Silent
from specs import small


class Records(Silent):
    def __init__(self) -> None:
        self.seen: list[StageRecord] = []

    def finished(self, record: StageRecord) -> None:
        self.seen.append(record)


@pytest.mark.parametrize("fresh", [False, True])
def test_processes_give_the_same_figures_and_tell_of_every_stage(
    tmp_path: Path, fresh: bool
) -> None:
    alone = recbias.run(small(), out=tmp_path / "one")
    heard = Records()
    together = recbias.run(small(), out=tmp_path / "two", workers=2, fresh=fresh, observer=heard)
    here, there = [(run.folder / "metrics.csv").read_bytes() for run in (alone, together)]
    assert here == there
    assert {each.stage for each in heard.seen} >= {"fit ItemKNN", "measure nDCG of MostPop"}
