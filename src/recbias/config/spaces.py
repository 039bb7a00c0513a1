"""Search spaces that come with the package: ``space: thesis``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from recbias.core.errors import UnknownName
from recbias.core.suggestions import suggest
from recbias.formats.yaml.tree import read_file


@cache
def packaged_spaces() -> Mapping[str, Mapping[str, Any]]:
    """Return the spaces of each model, by the name of the collection."""
    return read_file(Path(__file__).with_name("spaces.yaml")).data


def packaged(name: str, model: str) -> dict[str, Any]:
    """Return what is searched for one model, as a spec would write it.

    Args:
        name: The collection: ``thesis``.
        model: The name of the model.

    Raises:
        UnknownName: There is no such collection, or it has nothing for the model.
    """
    known = packaged_spaces()
    if name not in known:
        found = f"no search space is called {name!r}"
        raise UnknownName(found, remedy=suggest(name, known))
    if model not in known[name]:
        has = ", ".join(known[name])
        remedy = f"it has {has}; for {model} write the space: {{setting: {{log: [0.001, 1]}}}}"
        raise UnknownName(f"the search space {name!r} has nothing for {model}", remedy=remedy)
    return dict(known[name][model])
