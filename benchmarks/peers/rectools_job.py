"""Models of RecTools, and its ``calc_metrics``."""

from __future__ import annotations

import warnings
from typing import Any

import job_files as files
from implicit.nearest_neighbours import CosineRecommender
from rectools.dataset import Dataset
from rectools.metrics import MRR, NDCG, HitRate, Recall, calc_metrics
from rectools.models import EASEModel, ImplicitItemKNNWrapperModel, PopularModel, PureSVDModel


def make_model(name: str) -> Any:
    if name == "MostPop":
        return PopularModel()
    if name == "ItemKNN":
        return ImplicitItemKNNWrapperModel(CosineRecommender(K=files.NEIGHBORS))
    if name == "PureSVD":
        return PureSVDModel(factors=files.SVD_FACTORS)
    return EASEModel(regularization=files.REG, recommend_n_threads=1)


def main() -> None:
    arguments = files.read_arguments()
    warnings.filterwarnings("ignore")
    train, test = files.read_rows(arguments.split)
    data = Dataset.construct(train.assign(weight=1.0, datetime="2000-01-01"))
    metrics = {"nDCG": NDCG(files.K, divide_by_achievable=True), "Recall": Recall(files.K)}
    if len(arguments.models) > 1:
        metrics |= {"MRR": MRR(files.K), "HR": HitRate(files.K)}
    for name in arguments.models:
        model = make_model(name).fit(data)
        lists = model.recommend(train.user_id.unique(), data, files.K, filter_viewed=True)
        values = calc_metrics(metrics, lists, test)
        files.write_metrics(name, values["nDCG"], values["Recall"])
        lists.to_csv(files.name_lists(name), index=False)


if __name__ == "__main__":
    main()
