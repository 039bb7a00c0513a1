"""The notation of metrics: ``nDCG@5``, ``APLT(head=0.8)@10``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from recbias.core.errors import WrongType


@runtime_checkable
class OmitsSettings(Protocol):
    """A metric with settings that do not change its value, such as a number of permutations."""

    def omitted_settings(self) -> frozenset[str]:
        """Return the settings that the name of the metric in results omits."""


_NOTATION = re.compile(
    r"^\s*(?P<name>[^()@]+?)\s*(\((?P<settings>[^()]*)\))?\s*(@\s*(?P<k>[0-9]{1,9}))?\s*$"
)

_NUMBER = re.compile(r"^[-+]?([0-9]{1,99}\.?[0-9]{0,99}|\.[0-9]{1,99})([eE][-+]?[0-9]{1,3})?$")


def parse_metric(text: str) -> tuple[str, dict[str, object]]:
    """Parse the notation of a metric into its name and its settings; WrongType if it is none.

    >>> parse_metric("nDCG@5")
    ('nDCG', {'k': 5})
    >>> parse_metric("APLT(head=0.8)@10")
    ('APLT', {'head': 0.8, 'k': 10})
    """
    match = _NOTATION.match(text)
    if not match:
        message = f"{text!r} is not a metric's name"
        raise WrongType(message, remedy="write it as nDCG, nDCG@5 or APLT(head=0.8)@10")
    settings: dict[str, object] = {}
    for part in filter(None, map(str.strip, (match["settings"] or "").split(","))):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            message = f"{part!r} in {text!r} is not a setting"
            raise WrongType(message, remedy="write settings as (head=0.8)")
        settings[key.strip()] = _parse_value(value.strip())
    if match["k"]:
        settings["k"] = int(match["k"])
    return match["name"], settings


def format_metric(name: str, settings: Mapping[str, object]) -> str:
    """Format a metric in its notation; ``k`` follows the at sign.

    >>> format_metric("APLT", {"k": 10, "head": 0.8})
    'APLT(head=0.8)@10'
    """
    inner = ", ".join(f"{key}={value}" for key, value in settings.items() if key != "k")
    cutoff = f"@{settings['k']}" if settings.get("k") is not None else ""
    return f"{name}({inner}){cutoff}" if inner else f"{name}{cutoff}"


def _parse_value(text: str) -> object:
    if text.casefold() in {"true", "false"}:
        return text.casefold() == "true"
    if not _NUMBER.match(text):
        return text
    return int(text) if text.lstrip("+-").isdecimal() else float(text)
