"""The configuration of RecBole for a request."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from recbias.models.recbole.worker.requests import Refusal

DATASET = "rows"
"""RecBole's name of the training rows."""

USER, ITEM, TIME = "user_id", "item_id", "timestamp"

SIZES = ("embedding_size", "hidden_size", "latent_dimension", "mf_embedding_size")
"""RecBole's names of the size of the vectors; a model has one of them or none."""

ALLOWED = {"MAX_ITEM_LIST_LENGTH", "use_gpu", "gpu_id", "enable_amp", "require_pow"}
"""Settings that are neither of training nor of a model, and leave the data as they are."""

NO_NEGATIVES = {"train_neg_sample_args": None}


def find_model_class(name: str) -> Any:
    """Return the class of a general or sequential model of RecBole.

    Raises:
        Refusal: There is no such model, or it is of another kind.
    """
    from recbole.model import general_recommender, sequential_recommender

    modules = (general_recommender, sequential_recommender)
    classes = {
        key: value
        for module in modules
        for key, value in vars(module).items()
        if isinstance(value, type)
    }
    if name in classes:
        return classes[name]
    if not _find_defaults(name).exists():
        remedy = suggest(name, list(classes))
        raise Refusal(f"RecBole has no model {name!r}", where="model", remedy=remedy)
    message = f"{name} of RecBole needs more than interactions"
    remedy = "choose a general or a sequential model, such as BPR or SASRec"
    raise Refusal(message, where="model", remedy=remedy)


def _find_defaults(name: str) -> Path:
    """Return the path of RecBole's file with the settings of a model."""
    import recbole

    return Path(recbole.__file__).parent / "properties" / "model" / f"{name}.yaml"


def suggest(name: str, names: list[str]) -> str:
    """Return the nearest of some names as a remedy, or all of them."""
    spellings = {spelling.casefold(): spelling for spelling in names}
    nearest = difflib.get_close_matches(name.casefold(), list(spellings), 1)
    if nearest:
        return f"did you mean {spellings[nearest[0]]}?"
    return f"choose one of {', '.join(sorted(names))}"


def create_config(request: dict[str, Any], model: Any) -> Any:
    """Return the configuration of a request.

    Training has every row: RecBole's own validation and test parts are empty.

    Raises:
        Refusal: A setting is unknown, or is not the user's to choose.
    """
    from recbole.config import Config

    fixed = _fix_settings(request, is_sequential=_is_sequential(model))
    defaults = Config(model, DATASET, config_dict={**fixed, **NO_NEGATIVES})
    allowed = _list_allowed(defaults, model.__name__)
    given = {**_name_size(request["embedding_size"], model, allowed), **request["config"]}
    for name in given:
        if name not in allowed:
            raise _refuse_setting(name, defaults, allowed, model.__name__)
    if _has_no_negatives(defaults, given, model):
        fixed.update(NO_NEGATIVES)
    return Config(model, DATASET, config_dict={**fixed, **given})


def _is_sequential(model: Any) -> bool:
    from recbole.utils import ModelType

    return bool(model.type == ModelType.SEQUENTIAL)


def _fix_settings(request: dict[str, Any], *, is_sequential: bool) -> dict[str, Any]:
    """Return the settings that are not the user's, and defaults for one process on a CPU."""
    if is_sequential and not request["has_times"]:
        message = f"{request['model']} needs the order of interactions, and they have no times"
        remedy = "add a column timestamp to the interactions, or choose another model"
        raise Refusal(message, where="model", remedy=remedy)
    return {
        "data_path": ".",
        "checkpoint_dir": "checkpoints",
        "load_col": {"inter": [USER, ITEM, TIME] if is_sequential else [USER, ITEM]},
        "eval_args": {
            "split": {"RS": [1.0, 0.0, 0.0]},
            "order": "TO" if is_sequential else "RO",
            "group_by": "none",
            "mode": "full",
        },
        "USER_ID_FIELD": USER,
        "ITEM_ID_FIELD": ITEM,
        "TIME_FIELD": TIME,
        "seed": request["seed"],
        "reproducibility": True,
        "use_gpu": False,
        "show_progress": False,
        "state": "ERROR",
        "epochs": request["epochs"],
    }


def _list_allowed(defaults: Any, name: str) -> list[str]:
    """Return the settings that a user may give: those of training and of the model."""
    import yaml
    from recbole.utils import training_arguments

    path = _find_defaults(name)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    own = yaml.load(text, Loader=defaults.yaml_loader) or {}  # noqa: S506, TID251  RecBole's file
    return sorted({*ALLOWED, *own, *training_arguments} - {"epochs"})


def _name_size(size: int | None, model: Any, allowed: list[str]) -> dict[str, int]:
    """Return the size of the vectors by the name that the model has for it."""
    if size is None:
        return {}
    for name in SIZES:
        if name in allowed:
            return {name: size}
    message = f"{model.__name__} of RecBole has no size of vectors"
    raise Refusal(message, where="embedding_size", remedy="remove embedding_size")


def _refuse_setting(name: str, defaults: Any, allowed: list[str], model: str) -> Refusal:
    """Return the refusal of a setting that a user may not give."""
    where = f"config.{name}"
    if name in defaults.final_config_dict:
        message = f"recbias sets {name} of RecBole"
        return Refusal(message, where=where, remedy=f"remove {name}")
    message = f"{model} of RecBole has no setting {name}"
    return Refusal(message, where=where, remedy=suggest(name, allowed))


def _has_no_negatives(defaults: Any, given: dict[str, Any], model: Any) -> bool:
    """Return whether a model is trained without sampled items, which RecBole wants to be told."""
    from recbole.data.utils import get_dataloader

    if get_dataloader(defaults, "train").__name__ == "UserDataLoader":
        return True
    loss = {**defaults.final_config_dict, **given}.get("loss_type")
    return _is_sequential(model) and loss == "CE" and not hasattr(model, "input_type")
