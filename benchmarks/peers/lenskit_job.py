"""Models of LensKit by its pipelines, its batch runner, and its ``RunAnalysis``."""

from __future__ import annotations

import warnings
from typing import Any

import job_files as files
from lenskit.als import ImplicitMFScorer
from lenskit.basic import PopScorer
from lenskit.batch import recommend
from lenskit.data import ItemListCollection, from_interactions_df
from lenskit.knn import EASEScorer, ItemKNNScorer
from lenskit.metrics import NDCG, Hit, Recall, RecipRank, RunAnalysis
from lenskit.metrics.ranking import LogRankWeight
from lenskit.pipeline import topn_pipeline
from lenskit.training import TrainingOptions


def make_scorer(name: str) -> Any:
    if name == "MostPop":
        return PopScorer()
    if name == "ItemKNN":
        return ItemKNNScorer(max_nbrs=files.NEIGHBORS, feedback="implicit")
    if name == "EASE":
        return EASEScorer(regularization=files.REG)
    return ImplicitMFScorer(
        embedding_size=files.FACTORS,
        epochs=int(files.ALS["epochs"]),
        regularization=files.ALS["reg"],
        weight=files.ALS["alpha"],
    )


def main() -> None:
    arguments = files.read_arguments()
    warnings.filterwarnings("ignore", module="lenskit")
    train, test = files.read_rows(arguments.split)
    data = from_interactions_df(train)
    truth = ItemListCollection.from_df(test, ["user_id"])
    for name in arguments.models:
        pipeline = topn_pipeline(make_scorer(name), n=files.K)
        pipeline.train(data, TrainingOptions(rng=files.SEED, device="cpu"))
        lists = recommend(pipeline, data.users.ids(), files.K, n_jobs=1)
        analysis = RunAnalysis(NDCG(files.K, weight=LogRankWeight(offset=1)), Recall(files.K))
        if len(arguments.models) > 1:
            analysis.add_metric(RecipRank(files.K))
            analysis.add_metric(Hit(files.K))
        means = analysis.measure(lists, truth).list_summary()["mean"]
        files.write_metrics(name, means.iloc[0], means.iloc[1])
        lists.save_parquet(files.name_lists(name, "parquet"))


if __name__ == "__main__":
    main()
