"""The parts of a plan that can run at the same time: trials of one batch, and models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from recbias.core.models.devices import is_cuda
from recbias.core.records import Failure, StageRecord
from recbias.runner.execution.executor import Executor, run_model
from recbias.runner.execution.needed_stages import select_needed_stages
from recbias.runner.execution.stage_records import Silent, make_record
from recbias.runner.planning.plan import ModelPlan, Plan
from recbias.runner.source_digest import digest_own_sources
from recbias.runner.stage import Stage
from recbias.runner.storage.store import Store

NO_SHARES: Mapping[str, float] = MappingProxyType({})
"""The shares of a GPU if nothing is known of the memory of models."""

SEARCHING = frozenset({"baseline", "trial"})
"""Kinds of stage that come before the result of a search."""


@dataclass(frozen=True, eq=False)
class Job:
    """The unit of work of a worker.

    Args:
        needs: The addresses of the stages that must succeed before: trials and their baseline,
            and an answer that the models of several folds share.
        after: The addresses of the stages that must end before: answers of earlier models by which
            metrics choose members, or whose training or candidates a re-ranked model shares.
    """

    work: Stage | ModelPlan
    needs: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Its stages, in order."""
        return self.work.stages if isinstance(self.work, ModelPlan) else (self.work,)


@dataclass
class Jobs:
    """The remaining jobs of a plan.

    If every trial of a search depends on the one before, the trials stay with their model, and one
    worker runs them in order.

    Args:
        waiting: The jobs that no worker has started, in the order of the plan.
        done: The addresses of the stored trials and shared answers.
        ended: The addresses of the stages of ended jobs, also of those without a record.
    """

    executor: Executor
    waiting: list[Job] = field(default_factory=list)
    done: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)

    @classmethod
    def from_plan(cls, plan: Plan, executor: Executor) -> Jobs:
        """Return the jobs of a plan, without the trials that are already stored."""
        jobs, planned = cls(executor), set[str]()
        for model_plan in plan.model_plans:
            answer = model_plan.shared_answer
            if answer is not None and answer.digest in planned:
                jobs.waiting.append(Job(model_plan, frozenset({answer.digest})))
                continue
            planned |= {answer.digest} if answer is not None else set()
            stages = select_needed_stages(executor, model_plan)
            trials = [stage for stage in stages if stage.kind in SEARCHING]
            if all(len(_list_earlier(trial)) == n for n, trial in enumerate(trials)):
                jobs.waiting.append(Job(model_plan))
                continue
            for trial in trials:
                if trial.digest in planned:
                    continue
                if executor.is_stored(trial):
                    executor.ensure(trial)
                    jobs.done.add(trial.digest)
                else:
                    jobs.waiting.append(Job(trial, _list_earlier(trial)))
            digests = frozenset(trial.digest for trial in trials)
            planned |= digests
            jobs.waiting.append(Job(replace(model_plan, trials=()), digests))
        jobs.waiting = _wait_for_models(jobs.waiting)
        return jobs

    def take(self, limit: int | None = None) -> Sequence[Job]:
        """Remove the next jobs that can start from the queue and return them."""
        ended = self.executor.records.keys() | self.ended | self._list_lost_answers()
        ready = [job for job in self.waiting if job.needs <= self.done and job.after <= ended][
            :limit
        ]
        self.waiting = [job for job in self.waiting if job not in ready]
        return ready

    def _list_lost_answers(self) -> set[str]:
        """Return the addresses of the answers of waiting jobs that need a failed stage."""
        records = self.executor.records
        failed = {digest for digest, record in records.items() if record.failure is not None}
        return {
            stage.digest
            for job in self.waiting
            if job.needs & failed
            for stage in job.stages
            if stage.kind == "answer"
        }

    def count_gpus(self, job: Job, shares: Mapping[str, float] = NO_SHARES) -> float:
        """Return the number of GPUs that a job needs: the most of a stage to run, 0 without CUDA.

        ``shares`` are the shares of a GPU that stages need, by address; others need a whole one.
        """
        stages = job.stages
        if isinstance(job.work, ModelPlan):
            stages = select_needed_stages(self.executor, job.work)
        missing = [stage for stage in stages if not self.executor.is_stored(stage)]
        needs = [
            (sum(map(is_cuda, stage.devices)), shares.get(stage.digest, 1.0)) for stage in missing
        ]
        return max((n if n > 1 else n * share for n, share in needs), default=0)

    def select_input_records(self, job: Job) -> Mapping[str, StageRecord]:
        """Return the records of this run for the inputs of a job."""
        inputs = {source.digest for stage in job.stages for source in stage.inputs}
        records = self.executor.records
        return {digest: records[digest] for digest in inputs if digest in records}

    def report_dead_worker(self, job: Job, exit_code: int | None = None) -> list[StageRecord]:
        """Return the record of the stage that a worker was computing when its process died.

        Args:
            job: What it was computing.
            exit_code: The exit code of the process, negative for a signal; None if unknown.
        """
        executor, stages = self.executor, job.stages
        for stage in stages:
            executor.store.look_again(stage.digest)
        if isinstance(job.work, ModelPlan):
            stages = select_needed_stages(executor, job.work)
        unfinished = (stage for stage in stages if not executor.store.has(stage.digest))
        stage = next(unfinished, stages[0])
        failure = _describe_death(exit_code)
        return [make_record(stage, failure=failure)]

    def finish(self, records: list[StageRecord], job: Job | None = None) -> list[StageRecord]:
        """Take over the records of a worker for a job, and pass them to the observer.

        Jobs that need a failed trial never start.
        """
        self.ended |= {stage.digest for stage in job.stages} if job else set()
        for record in records:
            self.executor.records[record.digest] = record
            self.executor.store.look_again(record.digest)
            self.executor.observer.finished(record)
            if record.failure is None and record.kind in {*SEARCHING, "answer"}:
                self.done.add(record.digest)
        return records


def _describe_death(exit_code: int | None) -> Failure:
    how = ""
    if exit_code is not None:
        how = f" (signal {-exit_code})" if exit_code < 0 else f" (exit code {exit_code})"
    remedy = (
        "it may have run out of memory: use --workers 1, lower what makes it large (batch_size, "
        "negatives, embedding_size, the dataset), or give it more memory"
    )
    return Failure(f"the worker process died{how}", remedy)


def _list_earlier(trial: Stage) -> frozenset[str]:
    """Return the addresses of the baseline and of the trials that a trial depends on."""
    return frozenset(stage.digest for stage in trial.inputs if stage.kind in SEARCHING)


def digest_code(job: Job) -> str:
    """Return the digest of the code outside recbias that a job can run, as it was first read."""
    return digest_own_sources(stage.work for stage in job.stages)


def run_job(
    store: Store,
    job: Job,
    records: Mapping[str, StageRecord],
    *,
    fresh: bool,
    run_id: str,
    code: str,
) -> list[StageRecord]:
    """Run a job in a worker process.

    ``records`` are those of this run for its inputs; ``code`` is the digest of the code when the
    run was planned: with other code the job fails.
    """
    if digest_code(job) != code:
        message = "the code of its plug-in changed while the run was using it"
        remedy = "run again, and do not change the code before the run has ended"
        return [make_record(job.stages[0], failure=Failure(message, remedy, user=True))]
    executor = Executor(store, Silent(), fresh=fresh, records=dict(records), run_id=run_id)
    if isinstance(job.work, ModelPlan):
        return run_model(executor, job.work)
    return [executor.ensure(job.work)]


def _wait_for_models(waiting: Sequence[Job]) -> list[Job]:
    """Return the jobs, those of a model after the earlier models that it depends on.

    They choose members for it, or have its training or its candidates.
    """
    jobs, answers, owners = [], set[str](), dict[str, str]()
    for job in waiting:
        after = set[str]()
        if isinstance(job.work, ModelPlan):
            after = {stage.digest for stage in job.work.choices} & answers
            shared = [*job.work.candidates, *filter(None, [job.work.fit])]
            digests = [stage.digest for stage in (shared if job.work.candidates else ())]
            after |= {owners[digest] for digest in digests if digest in owners}
            if job.work.answer is not None:
                answers.add(job.work.answer.digest)
                for stage in shared:
                    owners.setdefault(stage.digest, job.work.answer.digest)
        else:
            inputs = job.work.inputs  # of a re-ranker, candidates whose inputs a model shares
            digests = [each.digest for stage in inputs for each in (stage, *stage.inputs)]
            after = {owners[digest] for digest in digests if digest in owners}
        jobs.append(replace(job, after=frozenset(after)))
    return jobs
