"""Write the lists of three other libraries for MovieLens-1M, and a spec that audits them.

    python benchmarks/audited_lists.py FOLDER --data DATA          # in each environment
    recbias run FOLDER/audit.yaml

The split is written first, as each library would get it: ratings of 4 and 5, 10-core, a random
fifth of each user's interactions as test set. Then each library that is installed in this
environment trains on it and writes its lists in its usual format: implicit (ALS), LensKit
(ItemKNN) and RecTools (EASE). Run the script in several environments if the libraries cannot share
one; the spec lists the files that are there. Only the first run needs recbias.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

K = 10
SEED = 42

SPEC = """\
# Lists of other libraries on MovieLens-1M, written by benchmarks/audited_lists.py.
name: audited-lists
dataset: {name: tables, items: items.csv, users: users.csv}
split: {name: given, train: train.csv, test: test.csv}
k: 10
models:
"""

METRICS = """\
metrics:
  - nDCG
  - Recall
  - log_popularity_difference
  - APLT
  - ItemCoverage
  - Gini
  - EE-R
  - {name: AWRF, attribute: genres}
  - {name: calibration_js, attribute: genres}
  - {name: intra_list_distance, attribute: genres}
  - corrected_Jain
  - {name: nDCG, by: gender}
  - {name: nDCG, by: age < 25, gap: atkinson}
  - {name: calibration_js, attribute: genres, by: gender}
tests: [{name: paired_t, correction: holm}]
"""


def write_split(folder: Path, data: Path) -> None:
    """Write train.csv, test.csv, users.csv and items.csv."""
    from recbias.data.filters_queries import KCore, Threshold
    from recbias.data.movielens import MovieLens1M
    from recbias.data.splits import RandomHoldout

    rng = np.random.default_rng(SEED)
    dataset = MovieLens1M().load(data, rng)
    for data_filter in (Threshold(at_least=4), KCore(k=10)):
        dataset = data_filter.apply(dataset, rng)
    split = RandomHoldout(test=0.2).split(dataset, 0, rng)
    user_ids, item_ids = np.array(dataset.user_ids.ids), np.array(dataset.item_ids.ids)
    for name, part in (("train", split.train), ("test", split.test)):
        if part is None:
            raise SystemExit("the split has no test set")
        rows, columns = part.binary.nonzero()
        frame = pd.DataFrame({"user_id": user_ids[rows], "item_id": item_ids[columns]})
        frame.to_csv(folder / f"{name}.csv", index=False)
    for name, column, attributes in (
        ("users", "user_id", dataset.users),
        ("items", "item_id", dataset.items),
    ):
        if attributes is None:
            raise SystemExit(f"the dataset has no {name}")
        frame = attributes.frame.reset_index(drop=True)
        frame.insert(0, column, user_ids if name == "users" else item_ids)
        frame.to_csv(folder / f"{name}.csv", index=False)


def write_implicit(train: pd.DataFrame, path: Path) -> None:
    """Write the lists of ALS as a table with scores."""
    from implicit.als import AlternatingLeastSquares
    from scipy.sparse import csr_matrix

    users, items = (train[name].astype("category") for name in ("user_id", "item_id"))
    matrix = csr_matrix((np.ones(len(train), np.float32), (users.cat.codes, items.cat.codes)))
    model = AlternatingLeastSquares(factors=64, alpha=10, random_state=SEED)
    model.fit(matrix, show_progress=False)
    codes, scores = model.recommend(np.arange(matrix.shape[0]), matrix, N=K)
    rows = {
        "user_id": np.repeat(np.array(users.cat.categories), K),
        "item_id": np.array(items.cat.categories)[codes.ravel()],
        "score": scores.ravel(),
    }
    pd.DataFrame(rows).to_csv(path, index=False)


def write_lenskit(train: pd.DataFrame, path: Path) -> None:
    """Write the lists of ItemKNN in LensKit's nested Parquet format."""
    from lenskit.batch import recommend
    from lenskit.data import from_interactions_df
    from lenskit.knn import ItemKNNScorer
    from lenskit.pipeline import topn_pipeline

    data = from_interactions_df(train)
    pipeline = topn_pipeline(ItemKNNScorer(max_nbrs=100, feedback="implicit"), n=K)
    pipeline.train(data)
    recommend(pipeline, train["user_id"].unique(), n=K, n_jobs=1).save_parquet(path)


def write_rectools(train: pd.DataFrame, path: Path) -> None:
    """Write the lists of EASE as the table that RecTools returns."""
    from rectools import Columns
    from rectools.dataset import Dataset
    from rectools.models import EASEModel

    rows = train.copy()
    rows[Columns.Weight], rows[Columns.Datetime] = 1, pd.Timestamp("2000-01-01")
    dataset = Dataset.construct(rows)
    model = EASEModel(regularization=500)
    model.fit(dataset)
    users = train["user_id"].unique()
    model.recommend(users, dataset, k=K, filter_viewed=True).to_csv(path, index=False)


LIBRARIES: dict[str, tuple[str, str, Callable[[pd.DataFrame, Path], None]]] = {
    "implicit": ("implicit ALS", "implicit.csv", write_implicit),
    "lenskit": ("LensKit ItemKNN", "lenskit.parquet", write_lenskit),
    "rectools": ("RecTools EASE", "rectools.csv", write_rectools),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, help="folder that holds ml-1m")
    options = parser.parse_args()
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "train.csv").exists():
        if options.data is None:
            raise SystemExit("--data must name the folder that holds ml-1m")
        write_split(folder, options.data)
    train: Any = pd.read_csv(folder / "train.csv")
    lines = []
    for library, (label, name, write) in LIBRARIES.items():
        path = folder / name
        if not path.exists() and importlib.util.find_spec(library):
            write(train, path)
        if path.exists():
            lines.append(f"  - {{name: lists, label: {label}, path: {name}}}\n")
        else:
            print(f"{library} is not installed in this environment")
    (folder / "audit.yaml").write_text(SPEC + "".join(lines) + METRICS, encoding="utf-8")


if __name__ == "__main__":
    main()
