"""Write the split of MovieLens 1M that all jobs read, and its ratings as RecBole and Elliot do.

``python prepare_split.py FOLDER`` writes ``train.csv`` and ``test.csv``: ratings of 4 and 5,
10-core, a random fifth of each user's rows as the test part.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from recbias.core.context import collect_warnings
from recbias.data.filters_queries import KCore, Threshold
from recbias.data.movielens import MovieLens1M
from recbias.data.splits import RandomHoldout


def main() -> None:
    data, folder = Path(sys.argv[1]), Path(sys.argv[2])
    rng = np.random.default_rng(42)
    with collect_warnings():
        dataset = MovieLens1M().load(data, rng)
    for data_filter in (Threshold(at_least=4), KCore(k=10)):
        dataset = data_filter.apply(dataset, rng)
    split = RandomHoldout(test=0.2).split(dataset, 0, rng)
    for name, rows in (("train", split.train), ("test", split.test)):
        assert rows is not None
        columns = {
            "user_id": rows.user_ids.ids[rows.users],
            "item_id": rows.item_ids.ids[rows.items],
        }
        pd.DataFrame(columns).to_csv(folder / f"{name}.csv", index=False)
        print(f"{name}: {len(rows):,} rows of {rows.n_users:,} users and {rows.n_items:,} items")
    (folder / "ml-1m").mkdir()
    text = (data / "ml-1m" / "ratings.dat").read_text("latin-1").replace("::", "\t")
    (folder / "ml-1m" / "dataset.tsv").write_text(text, encoding="utf-8")
    header = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
    (folder / "ml-1m" / "ml-1m.inter").write_text(header + text, encoding="utf-8")


if __name__ == "__main__":
    main()
