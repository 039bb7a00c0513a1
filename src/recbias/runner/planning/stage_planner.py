"""What planners of stages share: the identity of a plug-in in addresses, and its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from recbias.config.experiment import Experiment, PluginSpec, identify_plugin, list_input_files
from recbias.core.digests import compute_digest, to_canonical_json
from recbias.core.labelled_texts import evaluates_texts
from recbias.core.models.devices import omit_device_numbers
from recbias.core.models.selected_models import ReordersCandidates
from recbias.core.packages import list_libraries
from recbias.core.protocols import ActsAfterFit, ReadsModels
from recbias.runner.addresses import address_values, compute_address, join_address
from recbias.runner.source_digest import digest_sources
from recbias.runner.stage import Keys, Stage
from recbias.runner.storage.fingerprints import Fingerprints


def identify(spec: PluginSpec, fingerprints: Fingerprints) -> dict[str, object]:
    """Return the name and settings that distinguish a plug-in, with the digests of its files."""
    _, parameters = identify_plugin(spec, fingerprints.of)
    name = spec.name.rpartition(":")[2]  # of ./file.py:Name, whose source is in the address
    identity: dict[str, object] = {"name": name, "parameters": omit_device_numbers(parameters)}
    if isinstance(spec.plugin, ReadsModels):
        paths = spec.plugin.model_files()
        identity["files"] = [[path.name, fingerprints.of(path)] for path in paths]
    return identity


def identify_values(spec: PluginSpec, fingerprints: Fingerprints) -> str:
    """Return the digest of what distinguishes the values that a detector gives to a text."""
    if not evaluates_texts(spec.plugin):
        return ""
    identity = identify(spec, fingerprints)
    parameters = {
        key: value
        for key, value in omit_device_numbers(identify_plugin(spec, fingerprints.of)[1]).items()
        if key.rstrip("_") not in spec.plugin.after_evaluation
    }
    libraries = list_libraries(spec.plugin)
    return address_values(spec.plugin, identity | {"parameters": parameters}, libraries)


def identify_learner(spec: PluginSpec, fingerprints: Fingerprints) -> dict[str, object]:
    """Return what distinguishes the learned state of a model: not what it applies afterwards."""
    identity = identify(spec, fingerprints)
    if not isinstance(spec.plugin, ActsAfterFit):
        return identity
    parameters = omit_device_numbers(identify_plugin(spec, fingerprints.of)[1])
    learned = parameters.keys() - spec.plugin.after_fit
    return identity | {
        "parameters": {key: parameters[key] for key in parameters if key in learned}
    }


def find_learner(spec: PluginSpec) -> PluginSpec:
    """Return the model that is trained: of a model that reorders candidates, the other one."""
    if not isinstance(spec.plugin, ReordersCandidates):
        return spec
    name, model = spec.plugin.candidates.name, spec.plugin.candidates.model
    parameters = spec.parameters["candidates"]
    settings = {key: value for key, value in parameters.items() if key != "name"}
    learner = PluginSpec(spec.kind, name, name, model, settings, spec.where)
    return find_learner(learner)


@dataclass(frozen=True)
class StageFacts:
    """What many stages share, such as those of one metric for each model.

    Args:
        identity: What decides their addresses, as canonical JSON.
        files: The files that their plug-ins read, with their digests.
        subject: The name of the plug-in and the digest of the settings; empty without one.
        libraries: The packages whose version matters.
        code: The digest of the modules of their work, blank if it is not known.
    """

    identity: str
    files: Mapping[Path, str]
    subject: Mapping[str, str]
    libraries: tuple[str, ...]
    code: str

    def place(self, stage: Stage) -> Stage:
        """Return a stage at its address, with its files."""
        digest = compute_address(stage, self.identity, libraries=self.libraries, code=self.code)
        changes: dict[str, Any] = {"subject": type(stage.work).__name__, **self.subject}
        return replace(stage, digest=digest, files={**stage.files, **self.files}, **changes)

    def measure(
        self, title: str, work: object, inputs: tuple[Stage, ...], keys: Keys, location: str
    ) -> Stage:
        """Return a stage that measures, at its address; a plan may have 100,000 of them."""
        code = self.code or digest_sources(work)
        digest = join_address("measure", self.identity, inputs, self.libraries, code)
        return Stage(
            *("measure", title, digest, work, inputs, keys, location, self.files),  # type: ignore[arg-type]
            subject=self.subject["subject"],
            settings=self.subject["settings"],
        )


@dataclass(frozen=True)
class StagePlanner:
    """Places stages at their addresses."""

    experiment: Experiment
    fingerprints: Fingerprints
    _known: dict[tuple[object, ...], tuple[tuple[PluginSpec, ...], Any]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def identify(self, spec: PluginSpec) -> dict[str, object]:
        """Return the identity of a plug-in in addresses."""
        identity: dict[str, object] = self.recall(
            "identify", spec, make=lambda: identify(spec, self.fingerprints)
        )
        return identity

    def recall(self, purpose: str, *specs: PluginSpec, make: Callable[[], Any]) -> Any:
        """Return what is made once of some plug-ins: a metric is planned for every model.

        The plug-ins are kept, as their identities, by which they are found, would be used again.
        """
        key = (purpose, *map(id, specs))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = specs, make()
        return known[1]

    def list_files(self, *specs: PluginSpec) -> dict[Path, str]:
        """Return the files that plug-ins read, with the digests that ``identify`` has of them."""
        files: dict[Path, str] = self.recall(
            "files", *specs, make=lambda: self._digest_files(*specs)
        )
        return files

    def _digest_files(self, *specs: PluginSpec) -> dict[Path, str]:
        files: dict[Path, str] = {}
        for plugin in (spec.plugin for spec in specs):
            model_files = plugin.model_files() if isinstance(plugin, ReadsModels) else ()
            files |= self.fingerprints.of_files([*list_input_files(plugin), *model_files])
        return files

    def place(
        self,
        stage: Stage,
        *specs: PluginSpec,
        identity: Mapping[str, object],
        libraries: tuple[str, ...] = (),
        code: str = "",
    ) -> Stage:
        """Return a stage at its address, with the files that its plug-ins read.

        ``code`` is the digest of the modules of its work, if it is known.
        """
        return self.gather_facts(*specs, identity=identity, libraries=libraries, code=code).place(
            stage
        )

    def gather_facts(
        self,
        *specs: PluginSpec,
        identity: Mapping[str, object],
        libraries: tuple[str, ...] = (),
        code: str = "",
    ) -> StageFacts:
        """Return what stages with the same plug-ins, settings and seed share; see ``place``."""
        files, subject = self.list_files(*specs), self.describe(*specs)
        return StageFacts(to_canonical_json(identity), files, subject, libraries, code)

    def describe(self, *specs: PluginSpec) -> dict[str, str]:
        """Return the subject and the digest of the settings of a stage with some plug-ins."""
        if not specs:
            return {}
        described: dict[str, str] = self.recall(
            "describe", *specs, make=lambda: _describe([self.identify(spec) for spec in specs])
        )
        return described


def _describe(identities: Sequence[Mapping[str, object]]) -> dict[str, str]:
    return {"subject": str(identities[0]["name"]), "settings": compute_digest(identities)}
