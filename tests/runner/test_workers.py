from __future__ import annotations

import csv
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

import recbias
from recbias.core.errors import UserError
from support.commands import run_recbias, write_small_spec
from support.specs import make_small_spec

OWN = '''
from dataclasses import dataclass

import counts_of_neighbors
from recbias.models.knn import ItemKNN


@dataclass(frozen=True, kw_only=True)
class Own(ItemKNN):
    """ItemKNN with the number of neighbours of another module."""

    def fit(self, data, rng):
        return ItemKNN(neighbors=counts_of_neighbors.N).fit(data, rng)
'''

SPLIT = '''
from dataclasses import dataclass
from pathlib import Path

from recbias.data.splits import RandomHoldout


@dataclass(frozen=True, kw_only=True)
class Changing(RandomHoldout):
    """A random split, while which files are replaced."""

    def split(self, *inputs, **options):
        for path in Path(__file__).parent.glob("*.new"):
            path.replace(path.with_suffix(""))
        return super().split(*inputs, **options)
'''


def make_spec(folder: Path, changed: str, content: str) -> dict[str, Any]:
    """Return a spec with a plug-in, of which a file changes while the run splits the data."""
    files = {"own.py": OWN, "split.py": SPLIT, "counts_of_neighbors.py": "N = 40\n"}
    for name, text in (files | {f"{changed}.new": content}).items():
        (folder / name).write_text(f"{text}# {folder.name}\n")  # not the module of the other test
    return make_small_spec(
        split={"name": f"{folder}/split.py:Changing", "test": 0.2},
        models=[f"{folder}/own.py:Own"],
        metrics=["nDCG"],
        tests=[],
    )


def read_value(run: recbias.Run) -> float:
    return float(run.metrics["value"].iloc[0])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name, module in list(sys.modules.items()):  # workers of later tests would import them
        if Path(getattr(module, "__file__", None) or "/").is_relative_to(tmp_path):
            del sys.modules[name]


@pytest.mark.slow
def test_workers_run_a_plug_in_file_as_it_was_when_the_run_was_planned(folder: Path) -> None:
    spec = make_spec(folder, "own.py", OWN.replace("counts_of_neighbors.N", "1"))
    run = recbias.run(spec, out=folder / "out", workers=2)
    assert run.failures.empty
    make_spec(folder, "own.py", OWN)
    assert read_value(recbias.run(spec, out=folder / "one")) == read_value(run)


HAS_RAY = importlib.util.find_spec("ray") is not None
RAY = pytest.param(
    "ray", marks=[pytest.mark.skipif(not HAS_RAY, reason="ray is absent"), pytest.mark.slow]
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("executor", ["local", RAY])
def test_nothing_is_stored_of_a_module_that_changed_before_a_worker_imported_it(
    folder: Path, executor: Literal["local", "ray"]
) -> None:
    options: dict[str, Any] = {"workers": 2, "executor": executor}
    spec = make_spec(folder, "counts_of_neighbors.py", "N = 1\n")
    with pytest.raises(UserError, match="the code of its plug-in changed while the run"):
        recbias.run(spec, out=folder / "out", **options)
    make_spec(folder, "counts_of_neighbors.py", "N = 40\n")
    again = recbias.run(spec, out=folder / "out", **options)
    assert read_value(again) == read_value(recbias.run(spec, out=folder / "one"))


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
