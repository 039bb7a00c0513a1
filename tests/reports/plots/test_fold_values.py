from __future__ import annotations

from pathlib import Path

import pytest

from recbias.reports.plots_units import draw_fold_values
from recbias.reports.run import read_run
from recbias.reports.svg import Plot
from reports.plots.svg_reading import find_marks
from support.commands import invoke_recbias

SPEC = """\
name: folds
dataset: {{name: demo, n_users: 60, n_items: 40}}
split: {{name: random, test: 0.2, folds: {folds}}}
seed: {seed}
k: 5
models: [Random, MostPop]
metrics: [nDCG]
"""


def draw(folder: Path, folds: int, seed: str = "1") -> list[Plot]:
    spec = SPEC.format(folds=folds, seed=seed)
    if seed.startswith("["):
        spec = spec.replace("seed:", "seeds:")
    (folder / "folds.yaml").write_text(spec, encoding="utf-8")
    result = invoke_recbias("run", "folds.yaml", folder=folder)
    assert result.code == 0, result.err
    run = read_run((folder / "results" / "folds" / "latest").resolve())
    return list(draw_fold_values(run, "demo", str))


def test_each_fold_has_a_mark_on_the_line_of_its_model(tmp_path: Path) -> None:
    (plot,) = draw(tmp_path, 3)
    for model in ("Random", "MostPop"):
        marks = [
            mark
            for fold in (1, 2, 3)
            for mark in find_marks(plot, f"{model}, fold {fold}:").values()
        ]
        (mean,) = find_marks(plot, f"{model}, mean:").values()
        assert len(marks) == 3
        assert mean[0] == pytest.approx(sum(x for x, _ in marks) / 3, abs=0.2)
        assert {y for _, y in marks} == {mean[1]}
    assert plot.caption.startswith("3 folds. The standard deviation")


@pytest.mark.parametrize(("folds", "seed"), [(1, "1"), (2, "[1, 2]")])
def test_one_fold_or_several_seeds_have_no_plot(tmp_path: Path, folds: int, seed: str) -> None:
    assert draw(tmp_path, folds, seed) == []
