"""The program of the process in which RecBole trains a model or ranks items.

    python -m recbias.models.recbole.worker.main

It runs in the folder of the exchange, to which this package is copied, by the Python that has
RecBole. It imports nothing else of recbias and keeps to Python 3.8.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from recbias.models.recbole.worker.requests import (
    FACTS,
    LISTS,
    QUERIES,
    REQUEST,
    STATE,
    write_error,
)
from recbias.models.recbole.worker.stored_state import export_state, load_state
from recbias.models.recbole.worker.training import Training


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
