"""What of a plan may be worked on at once: trials that do not learn of one another, and models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from recbias.core.records import Failure, StageRecord
from recbias.runner.execution.executor import Executor, Silent, needed, record_of, walk_chain
from recbias.runner.planning.plan import ModelPlan, Plan
from recbias.runner.stage import Stage
from recbias.runner.storage.store import Store


@dataclass(frozen=True, eq=False)
class Job:
    """What one worker does in one go.

    Args:
        work: A trial, or a model with all that is left of it.
        needs: The addresses of the trials that must be done before.
    """

    work: Stage | ModelPlan
    needs: frozenset[str] = frozenset()

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Its stages, in order."""
        return self.work.stages if isinstance(self.work, ModelPlan) else (self.work,)


@dataclass
class Jobs:
    """The jobs of a plan that are still to be done.

    Trials that all wait for one another stay with their model: one worker does them in order.

    Args:
        walk: Is told what the workers did.
        waiting: What was not taken yet, in the order of the plan.
        done: The addresses of the trials that are stored.
    """

    walk: Executor
    waiting: list[Job] = field(default_factory=list)
    done: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, plan: Plan, walk: Executor) -> Jobs:
        """Return the jobs of a plan; trials that are stored already are none."""
        jobs, seen = cls(walk), set[str]()
        for chain in plan.chains:
            trials = [each for each in needed(walk, chain) if each.kind == "trial"]
            if all(len(_before(each)) == place for place, each in enumerate(trials)):
                jobs.waiting.append(Job(chain))
                continue
            new = [each for each in trials if each.digest not in seen and jobs._is_new(each)]
            seen |= {each.digest for each in trials}
            jobs.waiting += [Job(each, _before(each)) for each in new]
            rest = replace(chain, trials=())
            jobs.waiting.append(Job(rest, frozenset(each.digest for each in trials)))
        return jobs

    def _is_new(self, trial: Stage) -> bool:
        """Return whether a trial has to be done; one that is stored is noted as reused."""
        if self.walk.fresh or not self.walk.store.has(trial.digest):
            return True
        self.walk.ensure(trial)
        self.done.add(trial.digest)
        return False

    def take(self, most: int | None = None) -> Sequence[Job]:
        """Take out the next jobs that nothing is missing for, at most so many."""
        ready = [each for each in self.waiting if each.needs <= self.done][:most]
        self.waiting = [each for each in self.waiting if each not in ready]
        return ready

    def known(self, job: Job) -> Mapping[str, StageRecord]:
        """Return what happened in this run to the inputs of a job."""
        inputs = {each.digest for stage in job.stages for each in stage.inputs}
        return {each: self.walk.records[each] for each in inputs if each in self.walk.records}

    def died(self, job: Job) -> list[StageRecord]:
        """Return the record of what a worker was doing when its process was gone."""
        stages = needed(self.walk, job.work) if isinstance(job.work, ModelPlan) else job.stages
        stage = next((each for each in stages if not self.walk.store.has(each.digest)), stages[0])
        remedy = "it may have run out of memory: try --workers 1"
        return [record_of(stage, failure=Failure("the worker process died", remedy))]

    def finish(self, job: Job, records: list[StageRecord]) -> list[StageRecord]:
        """Take over what a worker says it did, and pass it on to the observer.

        What waits for a trial that failed is not taken any more.
        """
        for record in records:
            self.walk.records[record.digest] = record
            self.walk.observer.finished(record)
            if record.failure is None and record.kind == "trial":
                self.done.add(record.digest)
        return records


def _before(trial: Stage) -> frozenset[str]:
    """Return the addresses of the trials that a trial learns of."""
    return frozenset(each.digest for each in trial.inputs if each.kind == "trial")


def work_on(
    store: Store, job: Job, known: Mapping[str, StageRecord], *, fresh: bool
) -> list[StageRecord]:
    """Do a job; runs in a worker.

    Args:
        store: Where inputs and results are.
        job: What is to be done.
        known: What happened in this run to its inputs.
        fresh: Do not reuse what was stored before this run.
    """
    walk = Executor(store, Silent(), fresh=fresh, records=dict(known))
    if isinstance(job.work, ModelPlan):
        return walk_chain(walk, job.work)
    return [walk.ensure(job.work)]
