"""Trainings on equalised data: which rows stay, and what happens to the gap."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import recbias
from claims.test_explain import SPEC
from recbias.claims.interventions import (
    choose_left_out,
    match_lengths,
    match_popularity,
    read_interventions,
)
from recbias.core.dataset import Interactions, Vocabulary
from recbias.core.errors import UnknownName

CODES = np.array([1, 1, 0, 0], dtype=np.int32)


def make_rows(counts: list[int], items: list[int] | None = None) -> Interactions:
    users = np.repeat(np.arange(len(counts)), counts).astype(np.int32)
    codes = np.concatenate([np.arange(n) for n in counts]) if items is None else np.array(items)
    ids = [Vocabulary.of([str(n) for n in range(size)]) for size in (len(counts), 10)]
    return Interactions(users, codes.astype(np.int32), np.ones(len(users), np.float32), None, *ids)


def test_histories_are_cut_to_the_shorter_quantile() -> None:
    rows = make_rows([8, 4, 3, 5])
    kept = rows.take(match_lengths(rows, CODES, np.random.default_rng(0)))
    assert kept.user_counts().tolist() == [5, 3, 3, 5]


def test_groups_get_equal_shares_of_popular_items() -> None:
    popular = [0] * 60 + [5] * 20 + [0] * 20 + [5] * 60
    rows = make_rows([40, 40, 40, 40], popular)
    kept = rows.take(match_popularity(rows, CODES, np.random.default_rng(0)))
    shares = [np.mean(kept.items[CODES[kept.users] == code] == 0) for code in (0, 1)]
    assert shares[0] == pytest.approx(0.5, abs=0.15)
    assert shares[1] == pytest.approx(0.5, abs=0.15)


def test_the_larger_group_loses_users() -> None:
    left_out = choose_left_out(np.array([1, 1, 1, 0, -1], dtype=np.int32), seed=1)
    assert left_out[:3].sum() == 2
    assert not left_out[3:].any()


def test_effects_add_up_to_the_change_of_the_gap(tmp_path: Path) -> None:
    run = recbias.run(SPEC, out=tmp_path, progress=False)
    found = recbias.explain(run, "nDCG by gender", model="ItemKNN", retrain=("length", "seed"))
    effects = found.interventions.set_index("change")["effect"]
    assert effects["before"] == pytest.approx(found.gap["difference"], abs=1e-12)
    changed = effects[["length", "seed"]].sum()
    assert effects["before"] + changed == pytest.approx(effects["after"], abs=1e-12)
    assert effects["seed"] == 0.0  # ItemKNN draws nothing
    assert effects["length"] != 0.0
    assert any("Trained again" in sentence for sentence in found.sentences)


def test_which_part_of_a_run_is_explained_and_measured_is_said(tmp_path: Path) -> None:
    run = recbias.run({**SPEC, "seeds": [3, 4]}, out=tmp_path, progress=False)
    found = recbias.explain(run, "nDCG by gender", model="ItemKNN", retrain=("size",))
    assert found.sentences[0].startswith("nDCG of ItemKNN (of seed 3) is ")
    before = found.interventions["effect"].iloc[0]
    assert before != pytest.approx(found.gap["difference"], abs=1e-6)
    said = f"Before this, the gap is {before:.4f} without the users who are left out of training"
    assert any(sentence.startswith(said) for sentence in found.sentences)


def test_names_of_interventions() -> None:
    assert read_interventions(["seed", "size", "seed"]) == ("size", "seed")
    with pytest.raises(UnknownName, match="'sizes'"):
        read_interventions(["sizes"])
