"""The settings of a plug-in as text, from its dataclass and docstring."""

from __future__ import annotations

from dataclasses import dataclass

from recbias.config.docstrings import read_arguments
from recbias.config.settings import as_plain, read_settings
from recbias.config.type_text import describe_range, describe_type, render_yaml


@dataclass(frozen=True)
class Parameter:
    """One setting of a plug-in as text.

    Args:
        default: Its default in YAML; blank if there is none.
        range: Its range; blank if it has none.
    """

    name: str
    type: str
    default: str
    range: str
    doc: str
    needed: bool


def list_parameters(cls: type) -> list[Parameter]:
    """Return the settings of a plug-in's class, in order."""
    docs = read_arguments(cls)
    return [
        Parameter(
            name=setting.name,
            type=describe_type(setting.hint),
            default="" if setting.needed else render_yaml(as_plain(setting.default)),
            range=describe_range(setting.hint),
            doc=docs.get(setting.field.name, ""),
            needed=setting.needed,
        )
        for setting in read_settings(cls).values()
    ]
