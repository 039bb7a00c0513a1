"""A plug-in in words, from its dataclass and docstring: for ``recbias show`` and the docs."""

from __future__ import annotations

from dataclasses import dataclass

from recbias.config.docstrings import arguments, summary
from recbias.config.schema import json_schema
from recbias.config.settings import plain, settings
from recbias.config.type_text import in_yaml, range_in_words, type_in_words

__all__ = ["Parameter", "json_schema", "parameters", "summary"]


@dataclass(frozen=True)
class Parameter:
    """One setting of a plug-in in words.

    Args:
        name: As it is written in a spec.
        type: Its type in words.
        default: As it is written in YAML; blank where there is none, so that it must be given.
        range: Its range in words, blank where it has none.
        doc: What it is, from the docstring.
        needed: Whether it must be given.
    """

    name: str
    type: str
    default: str
    range: str
    doc: str
    needed: bool


def parameters(cls: type) -> list[Parameter]:
    """Return the settings of a plug-in's class, in order."""
    docs = arguments(cls)
    return [
        Parameter(
            name=each.name,
            type=type_in_words(each.hint),
            default="" if each.needed else in_yaml(plain(each.default)),
            range=range_in_words(each.hint),
            doc=docs.get(each.field.name, ""),
            needed=each.needed,
        )
        for each in settings(cls).values()
    ]
