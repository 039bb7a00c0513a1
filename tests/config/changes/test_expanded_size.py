from __future__ import annotations

from pathlib import Path

import pytest

from recbias import api
from recbias.config.changes import expanded_size
from recbias.config.changes.expanded_size import count_stages
from recbias.core.errors import Faults

SPEC = {
    "name": "x",
    "dataset": [{"name": "demo", "label": "a"}, {"name": "demo", "label": "b", "n_users": 90}],
    "seeds": [1, 2, 3],
    "split": {"name": "random", "test": 0.2, "validation": 0.1, "folds": 5},
    "models": [
        "MostPop",
        {
            "name": "ItemKNN",
            "tune": {"metric": "nDCG", "trials": 4, "space": {"neighbors": {"int": [1, 9]}}},
        },
    ],
    "metrics": ["nDCG", "HR", "MRR"],
}


def test_stages_are_counted_before_an_entry_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_stages = count_stages(contexts=2 * 3 * 5, labels=0, models=2, metrics=3, trials=5)
    monkeypatch.setattr(expanded_size, "MOST_STAGES", n_stages)
    plan, _ = api.plan(SPEC, out=tmp_path)
    assert 0 < len({stage.digest for stage in plan.stages}) <= n_stages
    monkeypatch.setattr(expanded_size, "MOST_STAGES", n_stages - 1)
    unread = SPEC | {"metrics": ["none", "no", "not"]}  # names that reading would report
    with pytest.raises(Faults, match="stages are more than") as caught:
        api.plan(unread, out=tmp_path)
    assert len(caught.value.faults) == 1
    assert f"{n_stages:,} stages are more than" in str(caught.value)


def test_a_sweep_counts_with_all_that_it_stands_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = {
        "name": "x",
        "dataset": "demo",
        "split": {"name": "random", "test": 0.2},
        "metrics": ["nDCG"],
    }
    spec |= {"models": ["ItemKNN"], "sweep": {"models.0.neighbors": [2, 3, 4], "seed": [1, 2]}}
    monkeypatch.setattr(expanded_size, "MOST_STAGES", 2 * (3 + 3 * 3) - 1)
    with pytest.raises(Faults, match="24 stages are more than 23"):
        api.plan(spec, out=tmp_path)
