"""Models of Cornac by its ``Experiment``, which ranks and measures, and keeps no lists."""

from __future__ import annotations

from typing import Any

import cornac
import job_files as files
import numpy as np
from cornac.data import Reader
from cornac.eval_methods import BaseMethod
from cornac.metrics import NDCG, Recall


def make_model(name: str) -> Any:
    if name == "MostPop":
        return cornac.models.MostPop(name=name)
    if name == "EASE":  # its default drops the negative weights
        return cornac.models.EASE(name=name, lamb=files.REG, posB=False, verbose=False)
    return cornac.models.BPR(
        name=name,
        k=files.FACTORS,
        max_iter=int(files.BPR["epochs"]),
        learning_rate=files.BPR["learning_rate"],
        lambda_reg=files.BPR["reg"],
        num_threads=1,
        seed=files.SEED,
    )


def main() -> None:
    arguments = files.read_arguments()
    paths = [str(arguments.split / name) for name in ("train.csv", "test.csv")]
    train, test = (Reader().read(path, fmt="UI", sep=",", skip_lines=1) for path in paths)
    method = BaseMethod.from_splits(train, test, exclude_unknowns=True, seed=files.SEED)
    models = [make_model(name) for name in arguments.models]
    metrics = [NDCG(files.K), Recall(files.K)]
    experiment = cornac.Experiment(method, models, metrics, user_based=True, verbose=False)
    experiment.run()
    for result in experiment.result:
        values = result.metric_avg_results
        files.write_metrics(result.model_name, values["NDCG@10"], values["Recall@10"])
    if arguments.lists:
        users = list(method.train_set.uid_map)
        for model in models:
            lists = [
                model.recommend(user, files.K, remove_seen=True, train_set=method.train_set)
                for user in users
            ]
            files.write_lists(model.name, users, np.array(lists))


if __name__ == "__main__":
    main()
