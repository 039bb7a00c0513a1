"""The sizes of the data that each stage of a plan reads, as far as they can be known before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recbias.core.machine.expected import EstimatesDataset, EstimatesSizes, Sizes
from recbias.core.records import StageRecord, Stored
from recbias.runner.answer_sizes import estimate_answers
from recbias.runner.stage import Stage
from recbias.runner.stage_sizes import measure_files
from recbias.runner.stages.shared import LoadDataset, SelectQueries, SplitDataset

UNFILTERED = "unfiltered"
"""The mark of the sizes of a dataset before a filter whose result is not known."""


@dataclass
class ExpectedSizes:
    """Finds the sizes of what stages read and make.

    Args:
        stored: The records of the results that a run would reuse, by address.
        rehearsed: The records of stages that were computed for the plan, by address.
        earlier: The records of any other stored results.
    """

    stored: Mapping[str, Stored]
    rehearsed: Mapping[str, StageRecord] = field(default_factory=dict)
    earlier: Sequence[Stored] = ()
    _known: dict[str, Sizes] = field(default_factory=dict)
    _of_inputs: dict[tuple[str, ...], Sizes] = field(default_factory=dict)

    def find(self, stage: Stage) -> Sizes:
        """Return the sizes of the inputs and of the result of a stage; a size may be missing."""
        if stage.digest not in self._known:
            self._known[stage.digest] = self._measured(stage) or self._estimate_once(stage)
        return self._known[stage.digest]

    def _estimate_once(self, stage: Stage) -> Sizes:
        """Return the sizes of a stage; the metrics of one model read the same."""
        if stage.kind != "measure" or stage.files:
            return self._estimate(stage)
        key = tuple([source.digest for source in stage.inputs])
        if key not in self._of_inputs:
            self._of_inputs[key] = self._estimate(stage)
        return self._of_inputs[key]

    def find_inputs(self, stage: Stage) -> dict[str, int]:
        """Return the sizes of the inputs of a stage, and the bytes of its files."""
        sizes: dict[str, int] = {}
        for source in stage.inputs:
            if stage.kind == source.kind == "trial":  # earlier ones read the same, and are last
                break
            read = self.find(source)
            if UNFILTERED not in read:
                sizes |= {name: n for name, n in read.items() if name != "bytes"}
        n_bytes = measure_files(stage.files)
        return sizes | ({"bytes": n_bytes} if n_bytes else {})

    def _measured(self, stage: Stage) -> Sizes:
        record = self.rehearsed.get(stage.digest)
        if record is not None and record.sizes:
            return record.sizes
        stored = self.stored.get(stage.digest)
        return stored.sizes if stored is not None else {}

    def _estimate(self, stage: Stage) -> Sizes:
        """Return the sizes of a stage by those of its inputs and what its plug-ins say."""
        sizes, work = self.find_inputs(stage), stage.work
        if isinstance(work, LoadDataset):
            return self._find_same_dataset(stage, sizes) or _estimate_dataset(work, sizes)
        if isinstance(work, SplitDataset) and "interactions" in sizes:
            return sizes | {"training": sizes["interactions"]} | _estimate(work.splitter, sizes)
        if isinstance(work, SelectQueries) and "users" in sizes:
            sizes |= {"queries": sizes["users"]} | _estimate(work.source, sizes)
            limit = sizes["queries"] if work.limit is None else work.limit * work.folds
            return sizes | {"queries": min(sizes["queries"], limit)}
        if stage.kind == "answer":
            return sizes | estimate_answers(getattr(work, "model", None), sizes)
        return sizes

    def _find_same_dataset(self, stage: Stage, sizes: Sizes) -> Sizes:
        """Return the sizes of a dataset that another version of recbias has loaded."""
        same = (
            record.sizes
            for record in self.earlier
            if (record.kind, record.subject, record.settings)
            == (stage.kind, stage.subject, stage.settings)
            and record.sizes.get("bytes") == sizes.get("bytes")
        )
        return next(same, {})


def _estimate(plugin: Any, sizes: Sizes) -> dict[str, int]:
    return dict(plugin.estimate_sizes(sizes)) if isinstance(plugin, EstimatesSizes) else {}


def _estimate_dataset(work: LoadDataset, sizes: dict[str, int]) -> Sizes:
    """Return the sizes of a dataset before it is loaded.

    What a filter leaves that does not say it is not known, so no other stage is told of it: it
    would seem to be too large.
    """
    if not isinstance(work.source, EstimatesDataset):
        return sizes
    estimated = work.source.estimate_dataset(work.data)
    if not estimated:
        return sizes
    sizes |= estimated
    for data_filter in work.filters:
        if not isinstance(data_filter, EstimatesSizes):
            return sizes | {UNFILTERED: 1}
        sizes |= _estimate(data_filter, sizes)
    return sizes
