"""Training rows as a dataset of RecBole, a model that learns from them, and its lists."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from recbias.models.recbole.worker.requests import PROGRESS, ROWS
from recbias.models.recbole.worker.settings import (
    DATASET,
    ITEM,
    TIME,
    USER,
    create_config,
    find_model_class,
)

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
