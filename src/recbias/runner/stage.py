"""A stage of a run: one step, with the stages that it depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Keys:
    """The dataset, seed, fold and model that a result belongs to; blank if one does not apply."""

    dataset: str = ""
    seed: int | None = None
    fold: int | None = None
    model: str = ""


@dataclass(frozen=True)
class Stage:
    """One step of a run.

    Args:
        kind: ``dataset``, ``split``, ``queries``, ``label``, ``baseline``, ``trial``, ``search``,
            ``fit``, ``answer`` or ``measure``.
        title: What users read: ``fit ItemKNN``.
        work: Called with the results of ``inputs``, in order; returns the result.
        spec_location: The entry of the spec that requests it, for messages:
            ``FILE:LINE:COLUMN: metrics[0]``.
        files: The input files that it reads, with their digests at planning time.
        devices: The devices that its model computes on; empty if it has no choice.
        subject: The name of its plug-in.
        settings: The digest of the settings of its plug-ins.
    """

    kind: str
    title: str
    digest: str
    work: Callable[..., Any] = field(compare=False)
    inputs: tuple[Stage, ...] = field(compare=False, repr=False)
    keys: Keys
    spec_location: str = field(default="", compare=False)
    files: Mapping[Path, str] = field(default_factory=dict, compare=False, repr=False)
    devices: tuple[str, ...] = field(default=(), compare=False)
    subject: str = field(default="", compare=False)
    settings: str = field(default="", compare=False)
