"""The learned state of a model of RecBole as arrays without Python objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from recbias.models.recbole.worker.requests import Refusal

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
