"""The popularity bias of classical recommenders, as Lichtenberg et al. measure it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from support.commands import invoke_recbias

SPECS = Path(__file__).parents[2] / "configs" / "papers" / "wok"

OF_ALL = "log_popularity_difference(popularity=all, corrected=False)"


NO_KEYS = {"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": ""}


def run_without_key(spec: str, data: Path, folder: Path, *options: str) -> Path:
    """Run a spec whose language models have no keys; return its run folder."""
    path = SPECS / f"{spec}.yaml"
    arguments = (path, "--data", data, *options)
    result = invoke_recbias("run", *arguments, folder=folder, env=NO_KEYS)
    assert result.code == 2
    for variable in NO_KEYS:
        assert f"the environment variable {variable} with the key is not set" in result.err
    return folder / "results" / f"wok-{spec}" / "latest"


def read_means(run: Path) -> pd.Series:
    """Return the means over samples, by metric and model at k = 10."""
    table = pd.read_csv(run / "metrics.csv")
    samples = table[table["fold"] != "all"]
    assert sorted(samples["fold"].unique()) == [*"12345"]
    means = table[(table["fold"] == "all") & (table["k"] == 10)]
    values: pd.Series = means.set_index(["metric", "model"])["value"].dropna()
    return values


@pytest.mark.real_data
@pytest.mark.slow
def test_baselines_of_the_papers_tables_are_measured_without_a_key(
    real_data: Path, tmp_path: Path
) -> None:
    values = read_means(run_without_key("ml-1m", real_data, tmp_path))
    models = ["Random", "MostPop", "ItemKNN", "UserKNN", "ItemKNN-recbias", "UserKNN-recbias"]
    bias, hits = values[OF_ALL][models], values["HR"][models]
    # LensKit's are in the order of the paper (0.957 and 0.630), those of recbias are not
    assert bias.tolist() == pytest.approx([-2.047, 1.340, 1.105, 0.756, 0.603, 0.760], abs=0.01)
    assert hits.tolist() == pytest.approx([0.003, 0.080, 0.139, 0.207, 0.190, 0.209], abs=0.01)
    assert (values["unmatched"] == 0).all()


def write_ml_10m(folder: Path, rng: np.random.Generator) -> None:
    """Write 60 users and 40 films, of which the first are the most popular, as MovieLens-10M."""
    (folder / "ml-10m").mkdir()
    popularity = 1 / np.arange(1, 41)
    lines = [
        f"{user}::{film}::{rating / 2}::{838985046 + film}"
        for user in range(1, 61)
        for film, rating in zip(
            rng.choice(np.arange(1, 41), 12, replace=False, p=popularity / popularity.sum()),
            rng.integers(1, 11, 12),
            strict=True,
        )
    ]
    (folder / "ml-10m" / "ratings.dat").write_text("\n".join(lines) + "\n")
    films = [f"{film}::Film {film} ({1968 + film})::Drama" for film in range(1, 41)]
    (folder / "ml-10m" / "movies.dat").write_text("\n".join(films) + "\n")
    (folder / "ml-10m" / "tags.dat").write_text("")


@pytest.mark.slow  # five datasets
def test_tables_of_ml_10m_are_planned_and_measured_in_the_publishers_layout(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    write_ml_10m(tmp_path, rng)
    size = ("--set", "queries.sample=11")
    arguments = (SPECS / "ml-10m.yaml", "--data", tmp_path, *size)
    planned = invoke_recbias("plan", *arguments, folder=tmp_path, env=NO_KEYS)
    assert planned.code == 0, planned.err
    assert "660 requests, 0 stored, 660 to send" in planned.out  # 55 users, 4 models, 3 prompts
    run = run_without_key("ml-10m", tmp_path, tmp_path, *size)
    values = read_means(run)[OF_ALL]
    assert values["Random"] < values["ItemKNN"] < values["MostPop"]
    reference = pd.read_csv(run / "reference.csv")
    compared = reference.dropna(subset="measured")
    assert set(compared["system"]) == {"Random", "MostPop", "ItemKNN", "UserKNN"}  # LensKit's
    too_large = invoke_recbias("run", *arguments[:-2], folder=tmp_path)
    assert too_large.code == 2
    assert "queries.sample: 5 disjoint samples of 1,000 need 5,000 users" in too_large.err
    assert "sample: 12 is the largest possible" in too_large.err
