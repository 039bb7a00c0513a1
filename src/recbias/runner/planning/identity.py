"""The identity of a plug-in in addresses: its name, its settings and the digests of its files."""

from __future__ import annotations

from pathlib import Path

from recbias.config.experiment import PluginSpec, identify_plugin, list_input_files
from recbias.core.protocols import ActsAfterFit, ReadsModels
from recbias.runner.storage.fingerprints import Fingerprints


def identify(spec: PluginSpec, fingerprints: Fingerprints) -> dict[str, object]:
    """Return the name and settings that distinguish a plug-in, with the digests of its files."""
    _, parameters = identify_plugin(spec, fingerprints.of)
    name = spec.name.rpartition(":")[2]  # of ./file.py:Name, whose source is in the address
    identity: dict[str, object] = {"name": name, "parameters": parameters}
    if isinstance(spec.plugin, ReadsModels):
        paths = spec.plugin.model_files()
        identity["files"] = [[path.name, fingerprints.of(path)] for path in paths]
    return identity


def fingerprint_input_files(spec: PluginSpec, fingerprints: Fingerprints) -> dict[Path, str]:
    """Return the files that a plug-in reads, with the digests that ``identify`` has of them."""
    model_files = spec.plugin.model_files() if isinstance(spec.plugin, ReadsModels) else ()
    return fingerprints.of_files([*list_input_files(spec.plugin), *model_files])


def identify_learner(spec: PluginSpec, fingerprints: Fingerprints) -> dict[str, object]:
    """Return what distinguishes the learned state of a model: not what it applies afterwards."""
    identity = identify(spec, fingerprints)
    if not isinstance(spec.plugin, ActsAfterFit):
        return identity
    parameters = {
        key: value
        for key, value in identify_plugin(spec, fingerprints.of)[1].items()
        if key not in spec.plugin.after_fit
    }
    return identity | {"parameters": parameters}
