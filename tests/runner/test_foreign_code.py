"""Plug-ins that fail or exit, or print."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from support.commands import run_recbias, write_small_spec

MODEL = """\
from recbias.plugin import Queries, RankedLists, TrainingData, dataclass, np, rank_by_scores
import sys
"""

CLASS = """
@dataclass(frozen=True, kw_only=True)
class {name}:
    '''Does: {code}.'''

    provides, needs, libraries = frozenset({{"lists"}}), frozenset({{"train"}}), ()

    def fit(self, data: TrainingData, rng: np.random.Generator) -> "Fitted":
        {code}
        return Fitted(np.bincount(data.train.items, minlength=data.train.n_items) * 1.0)

    def restore(self, state):
        return Fitted(state["scores"])
"""

FITTED = """
@dataclass(frozen=True, eq=False)
class Fitted:
    scores: np.ndarray

    def state(self):
        return {"scores": self.scores}

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        tile = lambda users: np.tile(self.scores, (len(users), 1))
        return rank_by_scores(tile, queries, k, data)
"""

FAILS = {
    "Exits": "sys.exit(0)",
    "Unencodable": "raise ValueError(chr(0xD800))",
    "Long": "raise ValueError('x' * 10**6)",
}
"""Models that fail, with what they do."""

GOES_ON = {"Prints": "print('printed')"}
"""Models that work."""


def test_no_model_ends_the_run_of_the_others(tmp_path: Path) -> None:
    classes = [CLASS.format(name=name, code=code) for name, code in {**FAILS, **GOES_ON}.items()]
    (tmp_path / "own.py").write_text(MODEL + "".join(classes) + FITTED)
    models = ["MostPop", *(f"./own.py:{name}" for name in (*FAILS, *GOES_ON)), "Random"]
    text = (
        "name: own\nseed: 1\ndataset: {name: demo, n_users: 60, n_items: 40}\n"
        f"split: {{name: random, test: 0.2}}\nk: 5\nmodels: {json.dumps(models)}\nmetrics: [HR]\n"
    )
    spec = write_small_spec(tmp_path, text)
    result = run_recbias("run", spec, "--json", "--workers", 2, folder=tmp_path)
    assert result.code == 1
    assert "Traceback" not in result.err
    assert "bug in recbias" not in result.err
    document = json.loads(result.out)
    with (tmp_path / document["folder"] / "metrics.csv").open() as rows:
        models_with_values = {row["model"] for row in csv.DictReader(rows) if row["value"]}
    assert models_with_values == {"MostPop", "Random", *GOES_ON}
    failures = {failure["model"]: failure["message"] for failure in document["failures"]}
    assert failures.keys() == FAILS.keys()
    assert failures["Exits"].startswith("SystemExit: 0 (own.py:")
    assert "printed" in result.err
    runs = [path for path in (tmp_path / "results" / "own").iterdir() if not path.is_symlink()]
    assert len(runs) == 1
    assert (runs[0] / "manifest.json").stat().st_size < 200_000
