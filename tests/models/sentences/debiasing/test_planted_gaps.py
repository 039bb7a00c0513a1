"""A transformer that learned a gap, or none: what is measured, and what CTDA leaves of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recbias
from recbias.metrics.perplexity import PerplexityGap
from support.worlds.texts.planted_gaps import (
    NAME_WORDS,
    compute_gap,
    make_names,
    make_planted_world,
    measure_p,
    sample_pairs_of_names,
    sample_texts_of_names,
    score_names,
    train_transformer,
)
from support.worlds.texts.sentence_worlds import GROUPS

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


@pytest.mark.slow
def test_a_transformer_without_a_gap_is_flagged_in_five_percent_of_worlds() -> None:
    n_worlds, n_pairs = 500, 40
    rng = np.random.default_rng(3)
    names = make_names(200)
    texts = sample_texts_of_names(names, 3000, rng)
    model = train_transformer(texts, (*names, *NAME_WORDS), n_steps=100)
    perplexity = score_names(model, names)
    metric = PerplexityGap(a=GROUPS[0], b=GROUPS[1], scale="log")
    p_values = np.array(
        [
            measure_p(metric, sample_pairs_of_names(perplexity, n_pairs, rng))[0]
            for _ in range(n_worlds)
        ]
    )
    assert np.mean(p_values < 0.05) == pytest.approx(0.05, abs=0.015)
    # names differ in how frequent they are, so a test that ignored the groups would be significant
    assert np.log(perplexity).mean(1).std() > 0.1
