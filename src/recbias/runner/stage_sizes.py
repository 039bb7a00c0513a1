"""The sizes of what a stage reads and makes, by which its time and memory are compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.split import Split
from recbias.core.queries.queries import Queries
from recbias.runner.answer_sizes import SAMPLED, count_characters, measure_answers
from recbias.runner.stages.model_outputs import ModelOutputs


def measure_sizes(values: Iterable[Any], files: Iterable[Path] = ()) -> dict[str, int]:
    """Return the sizes of the inputs and the result of a stage, and the bytes of its files.

    ``interactions`` are the rows of the dataset, ``times`` those with a time, ``training`` those
    of the training set, ``characters`` those of the ``reviews``, and ``longest`` those of the
    longest of them; ``item_characters`` those of all texts of the items, by a sample of the items;
    ``sentence_characters`` those of all columns of the ``sentences``, by a sample too.
    Texts of queries and of sentences are measured in bytes, as are, by a sample, the beginnings
    that ``texts`` in their alphabetical order share with the one before. For answers see
    ``answer_sizes``.

    >>> measure_sizes([])
    {}
    """
    sizes: dict[str, int] = {}
    for value in values:
        if isinstance(value, Dataset):
            rows = value.interactions
            sizes |= {"users": rows.n_users, "items": rows.n_items, "interactions": len(rows)}
            sizes |= {"times": len(rows)} if rows.times is not None else {}
            sizes |= _measure_texts(value.reviews.texts) if value.reviews is not None else {}
            if value.items is not None:
                sizes["item_characters"] = count_characters(value.items.frame)
        elif isinstance(value, Split):
            rows = value.train
            sizes |= {"users": rows.n_users, "items": rows.n_items, "training": len(rows)}
        elif isinstance(value, Queries):
            sizes["queries"] = len(value)
            sizes |= _measure_prompts(value.texts) if value.texts is not None else {}
        elif isinstance(value, ModelOutputs):
            sizes |= measure_answers(value)
        if isinstance(value, Dataset) and value.sentences is not None:
            lengths = map(len, map(_encode, value.sentences.texts))
            sizes["longest_sentence"] = max(lengths, default=0)
            sizes["sentences"] = len(value.sentences)
            sizes["sentence_characters"] = count_characters(value.sentences.frame)
    n_bytes = measure_files(files)
    return sizes | ({"bytes": n_bytes} if n_bytes else {})


def _measure_texts(texts: Iterable[str]) -> dict[str, int]:
    lengths = [len(text) for text in texts]
    return {
        "reviews": len(lengths),
        "characters": sum(lengths),
        "longest": max(lengths, default=0),
    }


def _measure_prompts(texts: Iterable[str | None]) -> dict[str, int]:
    encoded = sorted(_encode(text) for text in texts if text is not None)
    lengths = [len(text) for text in encoded]
    step = -(-len(encoded) // SAMPLED) or 1
    sampled = islice(pairwise(encoded), 0, None, step)
    return {
        "texts": len(encoded),
        "text_bytes": sum(lengths),
        "longest_text": max(lengths, default=0),
        "shared_bytes": step * sum(_count_shared(*pair) for pair in sampled),
    }


def _count_shared(first: bytes, second: bytes) -> int:
    """Return the length of the beginning that two texts share.

    >>> _count_shared(b"She left", b"She reads"), _count_shared(b"a", b"ab")
    (4, 1)
    """
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def measure_files(files: Iterable[Path]) -> int:
    """Return the bytes of the files that are there."""
    return sum([path.stat().st_size for path in files if path.is_file()])


def get_extent(kind: str, sizes: Mapping[str, int]) -> int:
    """Return the size with which the time of a stage of a kind grows; 0 if it is not known.

    >>> get_extent("fit", {"users": 5, "training": 40}), get_extent("fit", {})
    (40, 0)
    """
    names = {
        "dataset": ("bytes", "interactions"),
        "split": ("interactions",),
        "queries": ("users",),
        "label": ("items",),
        "answer": ("queries", "training"),
        "measure": ("queries", "training", "interactions"),
    }.get(kind, ("training", "interactions"))
    return next((sizes[name] for name in names if sizes.get(name)), 0)
