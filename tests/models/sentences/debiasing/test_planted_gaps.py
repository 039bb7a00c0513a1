"""A transformer that learned a gap, or none: what is measured, and what CTDA leaves of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recbias
from support.worlds.texts.planted_gaps import (
    compute_gap,
    make_planted_world,
)

RATIO = 4
GAP = {"name": "perplexity_gap", "a": "female", "b": "male", "scale": "log"}


def test_a_transformer_has_the_planted_gap_and_ctda_removes_it(tmp_path: Path) -> None:
    world = make_planted_world(tmp_path, RATIO)
    model: dict[str, Any] = {"name": "language_model", "model": str(world.model)}
    training = {"terms": str(world.terms), "epochs": 20, "batch_size": 48, "learning_rate": 0.01}
    spec = {
        "name": "planted",
        "device": "cpu",
        "dataset": world.write_tables(tmp_path),
        "queries": {"name": "sentences", "part": "test"},
        "models": [
            {**model, "label": "before"},
            {**model, "label": "CTDA", "debias": {"method": "CTDA"}, **training},
        ],
        "metrics": [GAP],
        "tests": ["paired_t"],
        "report": {"formats": ["md"]},
    }
    run = recbias.run(spec, out=tmp_path / "results")
    rows = run.metrics[run.metrics["target"] == ""].set_index("model")
    planted = compute_gap(RATIO)
    before, after = rows["value"]["before"], rows["value"]["CTDA"]
    assert before == pytest.approx(planted, rel=0.05)
    assert abs(after) < 0.05 * planted
    # the interval of the difference between the models holds the planted gap, up to that 5%
    compared = run.significance[run.significance["between"] == "models"]
    (difference,) = compared.loc[compared["target"].fillna("") == "", "difference"]
    assert abs(difference) == pytest.approx(planted, rel=0.1)
