from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from recbias.reports.views.findings import summarize_findings
from recbias.reports.views.run_tables import read_run
from support.run_folders import RunSpec, make_run


def test_findings_name_the_best_models_with_their_interval(tmp_path: Path) -> None:
    make_run(
        tmp_path, RunSpec(models=("a", "b", "c"), metrics=("nDCG", "ARP"), significance=False)
    )
    path = tmp_path / "metrics.csv"
    values = [0.1, 0.3, 0.2, 5.0, 7.0, 6.0]
    pd.read_csv(path).assign(value=values, ci_low=0.05, ci_high=0.5).to_csv(path, index=False)
    assert summarize_findings(read_run(tmp_path)) == [
        "b has the best nDCG@10, the highest of 3 models: 0.3000 (95% interval 0.0500 to 0.5000).",
        "a has the best ARP@10, the lowest of 3 models: 5.0000 (95% interval 0.0500 to 0.5000).",
    ]


def test_findings_count_the_significant_comparisons(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(models=("Random", "EASE"), metrics=("nDCG",)))
    best, count = summarize_findings(read_run(tmp_path))
    assert best.endswith(", significantly better than every other model.")
    assert count.startswith("1 of 1 comparison between models is significant (paired t-test")


def test_findings_count_comparisons_within_models_separately(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(models=("Random", "EASE"), metrics=("nDCG",)))
    path = tmp_path / "significance.csv"
    frame = pd.read_csv(path)
    groups = frame.assign(between="groups", model="EASE", significant=False)
    pd.concat([frame, groups]).to_csv(path, index=False)
    sentence = summarize_findings(read_run(tmp_path))[-1]
    assert sentence.startswith("0 of 1 comparison between groups are significant (paired t-test")


def test_tied_models_share_the_best_value(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(models=("a", "b"), metrics=("nDCG",), significance=False))
    path = tmp_path / "metrics.csv"
    pd.read_csv(path).assign(value=0.5).to_csv(path, index=False)
    sentence = summarize_findings(read_run(tmp_path))[0]
    assert sentence.startswith("a and b have the best nDCG@10")


@pytest.mark.parametrize("metrics", [("Gini",), ("Novelty",)])
def test_metrics_without_direction_have_no_best(tmp_path: Path, metrics: tuple[str, ...]) -> None:
    run = read_run(make_run(tmp_path, RunSpec(metrics=metrics, significance=False)))
    assert summarize_findings(run) == []
