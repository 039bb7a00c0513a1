"""What the nodes of a Ray cluster have: this recbias, the results, GPUs and memory for tasks."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from recbias.core.errors import Contradiction
from recbias.core.models.devices import is_cuda
from recbias.core.records import Failure
from recbias.runner.execution.jobs import Job
from recbias.runner.planning.plan import Plan
from recbias.runner.planning.preview import Step
from recbias.runner.source_digest import digest_package
from recbias.runner.storage.remote_store import RemoteStore
from recbias.runner.storage.store import Store

MIB = 2**20

CONTEXT_MB = 700
"""The memory of a process on a card besides tensors: its context, and the libraries of CUDA."""

MAX_TASKS_PER_CARD = 8
"""The number of tasks that share a GPU at most: more would wait for each other."""

CHECK_SECONDS = 60.0
"""How long a node may take to answer."""


def read_version() -> str:
    """Return the version of the recbias that runs."""
    version: str = sys.modules["recbias"].__version__
    return version


def check_nodes(ray: Any, store: Store) -> None:
    """Refuse a cluster with a node that has another recbias, or that lacks the results folder.

    Raises:
        Contradiction: A node does not answer, has another version or other source code, or does
            not see the results folder although there is no store at a URL.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    with nullcontext() if isinstance(store, RemoteStore) else store.temporary() as marker:
        folder = None if marker is None else str(marker.absolute())
        describe = ray.remote(num_cpus=0)(_make_probe(folder))
        answers = {}
        for node in ray.nodes():
            if node["Alive"]:
                placed = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                answers[describe.options(scheduling_strategy=placed).remote()] = node
        ready, late = ray.wait([*answers], num_returns=len(answers), timeout=CHECK_SECONDS)
        for answer in late:
            message = f"node {_name_node(answers[answer])} does not answer"
            raise Contradiction(message, remedy="remove it from the cluster, or start it again")
        for answer in ready:
            version, source, sees_folder = ray.get(answer)
            name = _name_node(answers[answer])
            require_same_recbias(version, source, name)
            if not sees_folder:
                message = f"node {name} does not see {store.folder.absolute()}"
                remedy = "mount the results folder there under the same path, or give --store URL"
                raise Contradiction(message, remedy=remedy)


def _make_probe(marker: str | None) -> Any:
    """Return a function that Ray sends to a node whole, which may lack recbias."""

    def describe_node() -> tuple[str, str, bool]:
        import os
        from importlib import import_module

        version, source = "", ""
        try:
            version = import_module("recbias").__version__
            source = import_module("recbias.runner.source_digest").digest_package()
        except (ImportError, AttributeError):
            pass
        return version, source, marker is None or os.path.isdir(marker)  # noqa: PTH112

    return describe_node


def require_same_recbias(version: str, source: str, node: str) -> None:
    """Refuse a node whose recbias would compute other results, or that has none.

    Raises:
        Contradiction: The version or the source code differs from this machine's.
    """
    here = read_version()
    if not version:
        message, remedy = f"node {node} has no recbias", f"pip install recbias=={here} there"
    elif version != here:
        message = f"node {node} has recbias {version}, this machine has {here}"
        remedy = f"pip install recbias=={here} there, or {version} here"
    elif source != digest_package():
        message = f"node {node} has other source code of recbias {here} than this machine"
        remedy = "install the same commit on both"
    else:
        return
    raise Contradiction(message, remedy=remedy)


def _name_node(node: Any) -> str:
    return str(node.get("NodeName") or node.get("NodeManagerAddress") or node["NodeID"])


def take_store(store: Store, *, node: str, origin: str) -> Store:
    """Return the store of a task: on another node than the origin, in a folder of that node.

    Args:
        store: The store of the run.
        node: The identifier of the node of the task.
        origin: The identifier of the node on which the run was started.
    """
    if node == origin or not isinstance(store, RemoteStore):
        return store
    folder = Path(tempfile.gettempdir()) / f"recbias-{node}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return replace(store, folder=folder / "store")


def find_lacking_files(job: Job, store: Store) -> Failure | None:
    """Return the failure of a job whose files this node lacks, None if it has all."""
    absent = {
        each.digest: [path for path in each.files if not path.exists()] for each in job.stages
    }
    needed = [paths for digest, paths in absent.items() if paths and not store.has(digest)]
    lacking = [path for paths in needed for path in paths]
    if not lacking:
        return None
    message = f"node {os.uname().nodename} lacks {_list_names(lacking)}"
    return Failure(message, "put the data there under the same path", user=True)


def _list_names(paths: Sequence[Path]) -> str:
    more = f" and {len(paths) - 1:,} more files" if len(paths) > 1 else ""
    return f"{paths[0]}{more}"


def check_gpus(plan: Plan, ray: Any) -> None:
    """Refuse a plan with models on CUDA if no node has a GPU, or if a model selects one of them.

    Raises:
        Contradiction: Ray would never start its tasks, or would hide the selected GPU from it.
    """
    devices = {device for stage in plan.stages for device in stage.devices if is_cuda(device)}
    if numbered := sorted(devices - {"cuda"}):
        message = f"device {numbered[0]}: Ray selects the GPU of each task"
        raise Contradiction(message, remedy="set device: cuda")
    if devices and not ray.cluster_resources().get("GPU", 0):
        message = "device cuda: no node of Ray has a GPU, so its tasks would never start"
        raise Contradiction(message, remedy="set device: cpu, or add a node with a GPU")


def plan_memory(steps: Sequence[Step], ray: Any) -> Mapping[str, int]:
    """Return the bytes that stages are expected to take, by address, where it is known.

    They are at most those of the largest node, as Ray would never start a task of more.
    """
    largest = max(node["Resources"].get("memory", 0) for node in ray.nodes() if node["Alive"])
    return {
        step.stage.digest: int(min(step.memory_mb * MIB, largest))
        for step in steps
        if not step.stored and step.memory_mb is not None
    }


def plan_cards(steps: Sequence[Step], card: int) -> Mapping[str, float]:
    """Return the shares of a GPU that stages need, by address, where their memory is known.

    ``card`` is the memory of a GPU in bytes, 0 if it is not known.
    """
    return {
        step.stage.digest: choose_share((CONTEXT_MB + step.expected.card_mb) * MIB, card)
        for step in (steps if card else ())
        if step.expected is not None and step.expected.card_mb is not None
    }


def choose_share(n_bytes: float, card: float) -> float:
    """Return the share of a GPU for a task: one of so many that fit together, to 4 digits.

    >>> choose_share(20e9, 80e9), choose_share(25e9, 80e9), choose_share(50e9, 80e9)
    (0.25, 0.3333, 1.0)
    """
    n_tasks = min(int(card // n_bytes), MAX_TASKS_PER_CARD)
    return 10_000 // max(n_tasks, 1) / 10_000


def count_memory(job: Job, needs: Mapping[str, int]) -> int:
    """Return the bytes of the largest stage of a job, 0 if none is known."""
    return max((needs.get(stage.digest, 0) for stage in job.stages), default=0)
