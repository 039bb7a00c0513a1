"""Models of Elliot by ``run_experiment`` and a configuration file, which is written here.

Elliot is not on PyPI: clone version 0.3.1, and install it and its requirements for Python 3.8.
Later commits ignore a filter that keeps less than 60 % of the rows, as that of the ratings does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import job_files as files

KNN = {"neighbors": files.NEIGHBORS, "similarity": "cosine", "implementation": "aiolli"}
MODELS = {
    "MostPop": ("MostPop", {}),
    "ItemKNN": ("ItemKNN", KNN),
    "UserKNN": ("UserKNN", {**KNN, "implementation": "standard"}),
    "PureSVD": ("PureSVD", {"factors": files.SVD_FACTORS, "seed": files.SEED}),
    "EASE": ("EASER", {"neighborhood": -1, "l2_norm": files.REG}),
}
"""Our names: those of Elliot, and the settings."""
FOLDERS = {
    "path_output_rec_result": "recs",
    "path_output_rec_weight": "weights",
    "path_output_rec_performance": "performance",
    "path_log_folder": "log",
}
FROM_RATINGS = {
    "prefiltering": [
        {"strategy": "global_threshold", "threshold": 4},
        {"strategy": "iterative_k_core", "core": 10},
    ],
    "splitting": {
        "save_on_disk": True,
        "save_folder": str(Path("splits").resolve()),
        "test_splitting": {"strategy": "random_subsampling", "test_ratio": 0.2, "folds": 1},
    },
}


def make_source(split: Path, *, ratings: bool) -> dict[str, Any]:
    """Return where the rows are; the given ones are written as Elliot reads them."""
    if ratings:
        data = {"strategy": "dataset", "dataset_path": str(split / "ml-1m" / "dataset.tsv")}
        return {"data_config": data, **FROM_RATINGS}
    paths = {}
    for part in ("train", "test"):
        rows = (split / f"{part}.csv").read_text(encoding="utf-8").splitlines()[1:]
        lines = [row.replace(",", "\t") + "\t1" for row in rows]
        path = Path(f"{part}.tsv").resolve()
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        paths[f"{part}_path"] = str(path)
    return {"data_config": {"strategy": "fixed", **paths}}


def make_configuration(names: list[str], source: dict[str, Any]) -> dict[str, Any]:
    """Return the experiment; several models are also compared by paired t-tests."""
    several = len(names) > 1
    meta = {"meta": {"save_recs": True, "verbose": False}}
    experiment = {
        "dataset": "rows",
        "binarize": True,
        "top_k": files.K,
        "gpu": -1,
        **{key: str(Path(folder).resolve()) for key, folder in FOLDERS.items()},
        "evaluation": {
            "cutoffs": [files.K],
            "simple_metrics": ["nDCG", "Recall", *(["MRR", "HR"] if several else [])],
            "relevance_threshold": 1,
            "paired_ttest": several,
        },
        "models": {MODELS[name][0]: {**meta, **MODELS[name][1]} for name in names},
    }
    return {"experiment": {**experiment, **source}}


def read_results(names: list[str]) -> None:
    """Move the lists and the values of ``rec_cutoff_10_*.tsv`` to where the others have them."""
    import pandas as pd

    (table,) = Path("performance").glob("rec_cutoff_*.tsv")
    values = pd.read_csv(table, sep="\t").set_index("model")
    for name in names:
        kind = MODELS[name][0]
        (lists,) = Path("recs").glob(f"{kind}*.tsv")
        lists.replace(files.name_lists(name, "tsv"))
        row = next(values.loc[model] for model in values.index if model.startswith(kind))
        files.write_metrics(name, row["nDCG"], row["Recall"])


def main() -> None:
    from elliot.run import run_experiment

    arguments = files.read_arguments()
    source = make_source(arguments.split, ratings=arguments.ratings)
    configuration = make_configuration(arguments.models, source)
    path = Path("configuration.yml").resolve()
    path.write_text(json.dumps(configuration), encoding="utf-8")  # JSON is YAML
    run_experiment(str(path))
    read_results(arguments.models)


if __name__ == "__main__":
    main()
