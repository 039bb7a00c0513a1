"""Models of RecBole by ``run_recbole``, which ranks and measures, and keeps no lists.

RecBole 1.2.1 reads its own checkpoint in torch 2.6 and newer only with
``TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD``. For a given split its validation part needs a row: it has one
training row, and validation is off.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import job_files as files
import numpy as np
from recbole.quick_start import load_data_and_model, run_recbole
from recbole.utils.case_study import full_sort_topk

MODELS = {
    "MostPop": ("Pop", {}),
    "ItemKNN": ("ItemKNN", {"k": files.NEIGHBORS, "shrink": 0.0}),
    "EASE": ("EASE", {"reg_weight": files.REG}),
    "BPR": ("BPR", {"embedding_size": files.FACTORS, "epochs": int(files.BPR["epochs"])}),
}
COMMON = {
    "seed": files.SEED,
    "use_gpu": False,
    "show_progress": False,
    "eval_step": 0,
    "topk": [files.K],
    "metrics": ["NDCG", "Recall"],
    "valid_metric": f"NDCG@{files.K}",
    "checkpoint_dir": "saved",
    "epochs": 1,
}
FROM_RATINGS = {
    "load_col": {"inter": ["user_id", "item_id", "rating"]},
    "val_interval": {"rating": "[4,inf)"},
    "user_inter_num_interval": "[10,inf)",
    "item_inter_num_interval": "[10,inf)",
    "eval_args": {
        "split": {"RS": [0.8, 0.0, 0.2]},
        "group_by": "user",
        "order": "RO",
        "mode": "full",
    },
}


def write_split(split: Path) -> Path:
    """Write the rows as RecBole's files, and return their folder."""
    parts = {name: (split / f"{name}.csv").read_text().splitlines()[1:] for name in FILES[::2]}
    parts["valid"] = parts["train"][:1]
    Path("data/rows").mkdir(parents=True, exist_ok=True)
    for name, rows in parts.items():
        lines = ["user_id:token,item_id:token", *rows, ""]
        Path(f"data/rows/rows.{name}.inter").write_text("\n".join(lines), encoding="utf-8")
    return Path("data")


FILES = ["train", "valid", "test"]


def write_lists(name: str) -> None:
    """Write the lists of the model that was stored last."""
    last = max(Path("saved").glob("*.pth"), key=lambda path: path.stat().st_mtime)
    config, model, data, train, _, test = load_data_and_model(str(last))
    users = np.unique(test.dataset.inter_feat[data.uid_field].numpy())
    items = full_sort_topk(users, model, test, files.K, config["device"])[1].cpu().numpy()
    user_ids = data.id2token(data.uid_field, users)
    files.write_lists(name, user_ids, data.id2token(data.iid_field, items))
    for part, rows in (("train", train.dataset), ("test", test.dataset)):
        fields = [data.uid_field, data.iid_field]
        columns = [data.id2token(field, rows.inter_feat[field].numpy()) for field in fields]
        lines = ["user_id,item_id", *map(",".join, zip(*columns, strict=True)), ""]
        Path(f"{part}.csv").write_text("\n".join(lines), encoding="utf-8")


def main() -> None:
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"
    arguments = files.read_arguments()
    source: dict[str, Any]
    if arguments.ratings:
        dataset = "ml-1m"
        source = FROM_RATINGS | {"data_path": str(arguments.split)}
    else:
        dataset = "rows"
        source = {"data_path": str(write_split(arguments.split)), "benchmark_filename": FILES}
        source |= {"field_separator": ",", "load_col": {"inter": ["user_id", "item_id"]}}
    if len(arguments.models) > 1:
        source["metrics"] = ["NDCG", "Recall", "MRR", "Hit"]
    for name in arguments.models:
        kind, settings = MODELS[name]
        result = run_recbole(kind, dataset, config_dict=COMMON | source | settings)
        values = result["test_result"]
        files.write_metrics(name, values[f"ndcg@{files.K}"], values[f"recall@{files.K}"])
        if arguments.lists:
            write_lists(name)


if __name__ == "__main__":
    main()
