"""Models as Ray tasks: on this machine, or on the cluster that ``RAY_ADDRESS`` names.

Every machine of the cluster must see the same results and data folders under the same paths: a
task reads its inputs from the store and writes its results there, and sends back its records only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

from recbias.core.errors import MissingExtra
from recbias.core.records import StageRecord
from recbias.core.registry import import_files, imported_files
from recbias.runner.execute import Walk
from recbias.runner.local import died, told, work_chain
from recbias.runner.plan import Chain, Plan
from recbias.runner.store import Store


@dataclass(frozen=True)
class RayTasks:
    """Walks the models of a plan as Ray tasks of one core each.

    A task whose process dies costs its own model only.

    Args:
        workers: Cores of a Ray that is started here; a running cluster has its own.

    Raises:
        MissingExtra: Ray is not installed.
    """

    workers: int

    def __post_init__(self) -> None:
        """Find out at once whether Ray is there."""
        try:
            import ray
        except ModuleNotFoundError as error:
            found = "--executor ray needs the package 'ray', which is not installed"
            raise MissingExtra(found, remedy="pip install 'recbias[ray]'") from error
        del ray

    def __call__(self, plan: Plan, walk: Walk) -> Iterable[list[StageRecord]]:
        """Yield the records of each model as it is done."""
        import ray

        started = not ray.is_initialized()
        if started:
            ray.init(**self._where(), include_dashboard=False, log_to_driver=False)
        try:
            yield from self._tasks(plan, walk, ray)
        finally:
            if started:
                ray.shutdown()

    def _where(self) -> dict[str, Any]:
        return {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": self.workers}

    def _tasks(self, plan: Plan, walk: Walk, ray: Any) -> Iterable[list[StageRecord]]:
        task = ray.remote(num_cpus=1, max_retries=0)(_work)
        files = imported_files()
        running: dict[Any, Chain] = {
            task.remote(files, _sent(walk, chain)): chain for chain in plan.chains
        }
        while running:
            (ready,), _ = ray.wait(list(running), num_returns=1)
            chain = running.pop(ready)
            try:
                records = ray.get(ready)
            except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError):
                records = [died(chain)]
            yield told(walk, records)


def _sent(walk: Walk, chain: Chain) -> bytes:
    """Return a chain as bytes: a task reads it only once it has the user's own plug-in files."""
    return bytes(ForkingPickler.dumps((Store(walk.store.folder.absolute()), chain, walk.fresh)))


def _work(files: Sequence[Path], sent: bytes) -> list[StageRecord]:
    """Walk one model; runs as a task."""
    import_files(files)
    store, chain, fresh = ForkingPickler.loads(sent)
    return work_chain(store, chain, fresh=fresh)
