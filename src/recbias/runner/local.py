"""Models in processes of this machine: each worker reads and writes the store, nothing else."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from recbias.core.records import Failure, StageRecord
from recbias.core.registry import import_files, imported_files
from recbias.runner.execute import Silent, Walk, one_after_another, walk_chain
from recbias.runner.plan import Chain, Plan
from recbias.runner.store import Store


@dataclass(frozen=True)
class Processes:
    """Walks the models of a plan in ``workers`` processes.

    A worker that dies (out of memory, a crash in a library) costs its own model only.

    Args:
        workers: How many at once; 1 walks them in this process.
    """

    workers: int

    def __call__(self, plan: Plan, walk: Walk) -> Iterable[list[StageRecord]]:
        """Yield the records of each model as it is done."""
        if self.workers <= 1:
            yield from one_after_another(plan, walk)
            return
        yield from self._rounds(list(plan.chains), walk)

    def _rounds(self, chains: list[Chain], walk: Walk) -> Iterable[list[StageRecord]]:
        alone = False
        while chains:
            left = []
            batch, rest = (chains[:1], chains[1:]) if alone else (chains, [])
            for chain, records in self._batch(batch, walk):
                if records is None and not alone:
                    left.append(chain)
                else:
                    found = records if records is not None else [died(chain)]
                    yield told(walk, found)
            chains, alone = [*left, *rest], bool(left) or alone

    def _batch(
        self, chains: list[Chain], walk: Walk
    ) -> Iterable[tuple[Chain, list[StageRecord] | None]]:
        context = multiprocessing.get_context("spawn")
        many = min(self.workers, len(chains))
        with ProcessPoolExecutor(
            many,
            mp_context=context,
            initializer=prepare_worker,
            initargs=(many, imported_files()),
        ) as pool:
            futures: dict[Future[list[StageRecord]], Chain] = {
                pool.submit(work_chain, walk.store, chain, fresh=walk.fresh): chain
                for chain in chains
            }
            for future in as_completed(futures):
                try:
                    yield futures[future], future.result()
                except BrokenProcessPool:
                    yield futures[future], None


def prepare_worker(workers: int, files: Sequence[Path]) -> None:
    """Make a worker ready: its share of the cores, and the user's own plug-in files."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(max(1, (os.cpu_count() or 1) // workers))
    import_files(files)


def work_chain(store: Store, chain: Chain, *, fresh: bool) -> list[StageRecord]:
    """Walk one model; runs in a worker."""
    walk = Walk(store, Silent(), fresh=fresh)
    if fresh:
        world = chain.world
        for stage in (world.dataset, world.split, world.queries):
            walk.values[stage.digest] = store.load(stage.digest)
    return walk_chain(walk, chain)


def told(walk: Walk, records: list[StageRecord]) -> list[StageRecord]:
    """Take over what a worker says it did, and pass it on to the observer."""
    for record in records:
        walk.records[record.digest] = record
        walk.observer.finished(record)
    return records


def died(chain: Chain) -> StageRecord:
    """Return the record of a model whose worker process is gone."""
    stage = chain.stages[0]
    failure = Failure("the worker process died", "it may have run out of memory: try --workers 1")
    return StageRecord(
        stage.title,
        stage.kind,
        stage.digest,
        dataset=stage.keys.dataset,
        seed=stage.keys.seed,
        fold=stage.keys.fold,
        model=stage.keys.model,
        failure=failure,
    )
