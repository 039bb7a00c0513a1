"""The program by which another Python, one that has RecBole, trains a model or ranks items.

    python recbole_worker.py

It is copied to the folder of the exchange and runs there: it reads a request, arrays and the
stored state of a model, and writes arrays, facts and progress. It imports nothing else of recbias
and keeps to Python 3.8.
"""

from __future__ import annotations

import difflib
import json
import os
import platform
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

REQUEST, ROWS, QUERIES = "request.json", "rows.npz", "queries.npz"
"""The files that the process reads."""

STATE, LISTS, FACTS, PROGRESS, ERROR = (
    *("state.npz", "lists.npz", "facts.json"),
    *("progress.txt", "error.json"),
)
"""The files that it writes; to rank, it reads the state."""


class Refusal(Exception):
    """A request that RecBole cannot serve.

    Args:
        message: What is wrong.
        where: The setting at fault, or blank.
        remedy: What to do, or blank.
    """

    def __init__(self, message: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.fields = {"message": message, "where": where, "remedy": remedy}


def write_error(kind: Any, error: BaseException, trace: Any) -> None:
    """Print an exception and write it to ``error.json``: the ``sys.excepthook`` of the process."""
    traceback.print_exception(kind, error, trace)
    if isinstance(error, Refusal):
        fields = error.fields
    else:
        text = f"{kind.__name__}: {error}" if str(error) else kind.__name__
        fields = {"message": " ".join(text.split()), "where": "", "remedy": ""}
    Path(ERROR).write_text(json.dumps(fields), encoding="utf-8")


PARAMETER, TENSOR, ARRAY, MATRIX = "parameter", "tensor", "array", "matrix"
"""The first part of the name of an array: what it was."""


def export_state(model: Any) -> dict[str, Any]:
    """Return the parameters of a model and what else it computed in training, by name.

    Raises:
        Refusal: The model keeps something else than tensors, arrays and sparse matrices.
    """
    state = {
        f"{PARAMETER}.{name}": tensor.detach().cpu().numpy()
        for name, tensor in model.state_dict().items()
    }
    for name, value in model.other_parameter().items():
        state.update(_export_value(name, value, type(model).__name__))
    return state


def _export_value(name: str, value: Any, model: str) -> dict[str, Any]:
    import torch
    from scipy import sparse

    if value is None:
        return {}
    if isinstance(value, torch.Tensor) and not value.is_sparse:
        return {f"{TENSOR}.{name}": value.detach().cpu().numpy()}
    if sparse.issparse(value):
        rows = sparse.csr_matrix(value)
        parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}
        shape = np.array(rows.shape, dtype=np.int64)
        return {f"{MATRIX}.{name}.{part}": a for part, a in {**parts, "shape": shape}.items()}
    array = np.asarray(value)
    if array.dtype.hasobject:
        message = f"{model} of RecBole keeps {name}, which is not made of arrays"
        raise Refusal(message, where="model", remedy="choose another model")
    return {f"{ARRAY}.{name}": array}


def load_state(model: Any, state: Any) -> None:
    """Give a new model the stored state."""
    import torch
    from scipy import sparse

    kinds: dict[str, dict[str, Any]] = {PARAMETER: {}, TENSOR: {}, ARRAY: {}, MATRIX: {}}
    for key in state:
        kind, _, name = key.partition(".")
        kinds[kind][name] = state[key]
    device = next((tensor.device for tensor in model.parameters()), torch.device("cpu"))
    parameters = {name: torch.as_tensor(array) for name, array in kinds[PARAMETER].items()}
    model.load_state_dict(parameters)
    values = {name: torch.as_tensor(a).to(device) for name, a in kinds[TENSOR].items()}
    values.update({name: a if a.ndim else a.item() for name, a in kinds[ARRAY].items()})
    for name in {key.rpartition(".")[0] for key in kinds[MATRIX]}:
        data, indices, indptr, shape = (
            kinds[MATRIX][f"{name}.{part}"] for part in ("data", "indices", "indptr", "shape")
        )
        values[name] = sparse.csr_matrix((data, indices, indptr), shape=tuple(shape))
    model.load_other_parameter(values)


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


BLOCK_SCORES = 2**22
"""The number of scores that are ranked at once."""


class Training:
    """The rows of a request as RecBole's dataset, and the model of the request.

    Args:
        request: The model, its settings and the seed.

    Attributes:
        users: The user of each training row, ``int64``.
        numbers: RecBole's number of the item of each row.
        codes: The code of each item with a row, ascending.
        items: RecBole's number of each of these items.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        from recbole.data import create_dataset
        from recbole.data.utils import create_samplers, get_dataloader
        from recbole.utils import init_seed

        model = find_model_class(request["model"])
        self.config = config = create_config(request, model)
        with np.load(ROWS, allow_pickle=False) as rows:
            self.users, row_codes, ranks = rows["users"], rows["items"], rows["ranks"]
        has_times = TIME in config["load_col"]["inter"]
        write_rows(self.users, row_codes, ranks, has_times=has_times)
        init_seed(config["seed"], config["reproducibility"])
        self.dataset = create_dataset(config)
        built = self.dataset.build()
        sampler = create_samplers(config, self.dataset, built)[0]
        self.batches = get_dataloader(config, "train")(
            config, built[0], sampler, shuffle=config["shuffle"]
        )
        init_seed(config["seed"], config["reproducibility"])
        self.model = model(config, self.batches.dataset).to(config["device"])
        tokens = self.dataset.id2token(ITEM, np.arange(1, self.dataset.item_num))
        order = np.argsort(tokens.astype(np.int64))
        self.codes, self.items = tokens.astype(np.int64)[order], 1 + order
        self.numbers = self.items[np.searchsorted(self.codes, row_codes)]

    def fit(self) -> float:
        """Train the model, and return the mean CPU seconds of an epoch.

        Each epoch writes its loss as a line of the progress.
        """
        from recbole.utils import get_trainer

        kind = get_trainer(self.config["MODEL_TYPE"], self.config["model"])
        trainer = kind(self.config, self.model)
        train_epoch = trainer._train_epoch  # noqa: SLF001  nothing public reports each epoch
        seconds: list[float] = []

        def train_and_report(*arguments: Any, **options: Any) -> Any:
            start = time.process_time()
            loss = train_epoch(*arguments, **options)
            seconds.append(time.process_time() - start)
            with Path(PROGRESS).open("a", encoding="utf-8") as stream:
                stream.write(f"{sum(loss) if isinstance(loss, tuple) else loss}\n")
            return loss

        trainer._train_epoch = train_and_report  # noqa: SLF001
        trainer.fit(self.batches, verbose=False, saved=False, show_progress=False)
        return float(np.mean(seconds)) if seconds else 0.0

    def rank(self, users: Any, k: int) -> tuple[Any, Any]:
        """Return the ``k`` best items of each user without those of the history, with scores.

        Equal scores are in the order of the codes. A place without an item is -1, its score NaN.

        Args:
            users: Users with training rows, ``int64[n]``.
            k: Length of a list.
        """
        import torch

        self.model.eval()
        lists = np.full((len(users), k), -1, dtype=np.int32)
        values = np.full((len(users), k), np.nan, dtype=np.float32)
        positions = np.argsort(self.items)  # of RecBole's numbers among the codes
        seen = group_rows(self.users, positions[self.numbers - 1])
        size = max(1, BLOCK_SCORES // max(len(self.codes), 1))
        for start in range(0, len(users), size):
            block = users[start : start + size]
            with torch.no_grad():
                scores = self.score(block)
            for row, user in enumerate(block.tolist()):
                scores[row, seen[user]] = -np.inf
            scores[np.isnan(scores)] = -np.inf
            top = np.argsort(-scores, axis=1, kind="stable")[:, :k]
            best = np.take_along_axis(scores, top, 1)
            location = np.s_[start : start + len(block), : top.shape[1]]
            lists[location] = np.where(best > -np.inf, self.codes[top], -1)
            values[location] = np.where(best > -np.inf, best, np.nan)
        return lists, values

    def score(self, users: Any) -> Any:
        """Return the scores of users for the items in the order of their codes, ``(b, n)``."""
        asked = self.create_queries(users)
        try:
            scores = self.model.full_sort_predict(asked.to(self.config["device"]))
        except NotImplementedError:
            scores = np.stack([*self.predict_pairs(asked)])
        if not isinstance(scores, np.ndarray):
            scores = scores.detach().cpu().numpy()
        return np.array(scores.reshape(len(users), -1)[:, self.items], dtype=np.float32)

    def predict_pairs(self, asked: Any) -> Iterator[Any]:
        """Yield the scores of all items for each user, of a model that scores pairs."""
        import torch

        numbers = torch.arange(self.dataset.item_num)
        for row in range(len(asked)):
            pairs = asked[[row]].repeat(len(numbers))
            pairs.interaction[ITEM] = numbers
            yield self.model.predict(pairs.to(self.config["device"])).cpu().numpy().ravel()

    def create_queries(self, users: Any) -> Any:
        """Return users as RecBole's interactions, for a sequential model with their histories."""
        import torch
        from recbole.data.interaction import Interaction

        numbers = self.dataset.token2id(USER, users.astype(str))
        columns = {USER: torch.as_tensor(numbers, dtype=torch.int64)}
        if TIME in self.config["load_col"]["inter"]:
            n = self.config["MAX_ITEM_LIST_LENGTH"]
            histories = group_rows(self.users, self.numbers)
            last = [histories[user][-n:] for user in users.tolist()]
            padded = np.stack([np.pad(items, (0, n - len(items))) for items in last])
            columns[ITEM + self.config["LIST_SUFFIX"]] = torch.as_tensor(padded)
            lengths = torch.as_tensor([len(items) for items in last])
            columns[self.config["ITEM_LIST_LENGTH_FIELD"]] = lengths
        return Interaction(columns)


def group_rows(users: Any, values: Any) -> list[Any]:
    """Return the values of the rows of each user, by user code.

    >>> [group.tolist() for group in group_rows(np.array([0, 2, 0]), np.array([5, 6, 7]))]
    [[5, 7], [], [6]]
    """
    order = np.argsort(users, kind="stable")
    ends = np.cumsum(np.bincount(users))
    return np.split(values[order], ends[:-1])


def write_rows(users: Any, items: Any, ranks: Any, *, has_times: bool) -> None:
    """Write the training rows as RecBole's atomic file.

    Without times a repeated pair is written once; with them the time is the place in the history,
    because RecBole reads times as ``float32``, in which seconds since 1970 are rounded to minutes.
    """
    folder = Path(DATASET)
    folder.mkdir(exist_ok=True)
    columns = [users, items]
    if has_times:
        columns.append(ranks)
    else:
        pairs = np.unique(np.stack(columns, 1), axis=0)
        columns = [pairs[:, 0], pairs[:, 1]]
    names = [f"{USER}:token", f"{ITEM}:token", f"{TIME}:float"][: len(columns)]
    with (folder / f"{DATASET}.inter").open("w", encoding="utf-8") as stream:
        stream.write("\t".join(names) + "\n")
        np.savetxt(stream, np.stack(columns, 1), fmt="%d", delimiter="\t")


def main() -> None:
    """Serve the request in the current folder."""
    sys.excepthook = write_error
    threading.Thread(target=follow_parent, args=(os.getppid(),), daemon=True).start()
    request = json.loads(Path(REQUEST).read_text(encoding="utf-8"))
    restore_removed_names()
    import recbole
    import torch

    torch.set_num_threads(1)
    facts = {
        "recbole": recbole.__version__,
        "recbole_torch": torch.__version__,
        "recbole_python": platform.python_version(),
    }
    training = Training(request)
    if request["task"] == "fit":
        facts["recbole_cpu_seconds_an_epoch"] = f"{training.fit():.4g}"
        np.savez(STATE, **export_state(training.model))
    else:
        with np.load(STATE, allow_pickle=False) as state:
            load_state(training.model, {name: state[name] for name in state.files})
        with np.load(QUERIES, allow_pickle=False) as queries:
            items, scores = training.rank(queries["users"], request["k"])
        np.savez(LISTS, items=items, scores=scores)
    Path(FACTS).write_text(json.dumps(facts), encoding="utf-8")


def follow_parent(parent: int) -> None:
    """End this process when the one that started it has ended without ending it."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def restore_removed_names() -> None:
    """Give NumPy 2 and SciPy 1.14 back the names that RecBole 1.2.1 looks up."""
    from scipy import sparse

    kinds: dict[str, Any] = {
        "float_": np.float64,
        "complex_": np.complex128,
        "unicode_": np.str_,
    }
    for name, kind in kinds.items():
        if name not in vars(np):
            setattr(np, name, kind)
    if not hasattr(sparse.dok_matrix, "_update"):
        sparse.dok_matrix._update = lambda matrix, cells: matrix._dict.update(cells)  # noqa: SLF001


if __name__ == "__main__":
    main()
