"""Clusters on this machine: a node is killed, lacks the data, or has another recbias."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recbias
from recbias.runner.execute import Job, Silent
from recbias.runner.ray import find_lacking_files, take_store
from recbias.runner.stage import Keys, Stage
from recbias.runner.store import Store
from recbias.runner.store_url import RemoteStore
from support.commands import run_recbias
from support.specs import make_small_spec

pytestmark = pytest.mark.filterwarnings("ignore")

SLOW_MODEL = '''
import time
from dataclasses import dataclass
from pathlib import Path

from recbias.models.baselines import MostPop


@dataclass(frozen=True, kw_only=True)
class Slow(MostPop):
    """Popularity; the first training ends only when its node dies (this test)."""

    marker: str = ""

    def fit(self, data, rng):
        if not Path(self.marker).exists():
            import ray

            Path(self.marker).write_text(ray.get_runtime_context().get_node_id())
            time.sleep(300)
        return super().fit(data, rng)
'''


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head without cores, on which the test runs, and three nodes of one core."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("ray is not installed")
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    ray.init(address=cluster.address, include_dashboard=False, log_to_driver=False)
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


class Warnings(Silent):
    """Keeps the warnings and the titles of computed stages."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.computed: list[str] = []

    def warned(self, warning: str) -> None:
        self.warnings.append(warning)

    def finished(self, record: Any) -> None:
        self.computed += [] if record.reused else [record.digest]


def kill_node(cluster: Any, nodes: list[Any], marker: Path) -> None:
    """Kill the node that has written its identifier into the marker."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if marker.exists() and (text := marker.read_text()):
            node = next(node for node in nodes if node.node_id == text)
            cluster.remove_node(node, allow_graceful=False)
            return
        time.sleep(0.1)


@pytest.mark.slow  # a minute of CPU
def test_the_task_of_a_killed_node_is_done_by_another(tmp_path: Path, cluster: Any) -> None:
    nodes = [cluster.add_node(num_cpus=1) for _ in range(3)]
    model, marker = tmp_path / "slow.py", tmp_path / "marker"
    model.write_text(SLOW_MODEL, encoding="utf-8")
    slow = {"name": f"{model}:Slow", "label": "slow", "marker": str(marker)}
    spec = make_small_spec(models=["MostPop", slow, "ItemKNN", "UserKNN"])
    killer = threading.Thread(target=kill_node, args=(cluster, nodes, marker), daemon=True)
    killer.start()
    observer = Warnings()
    url = f"file://{tmp_path}/shared"
    spread = recbias.run(
        spec, out=tmp_path / "spread", executor="ray", store=url, observer=observer
    )
    killer.join()
    assert observer.warnings == ["a node of Ray died: its task starts again on another node"]
    assert len(observer.computed) == len(set(observer.computed))
    alone = recbias.run(spec, out=tmp_path / "alone")
    tables = [(run.folder / "metrics.csv").read_bytes() for run in (spread, alone)]
    assert tables[0] == tables[1]
    # All results are at the URL: another machine has nothing to compute.
    elsewhere = Warnings()
    recbias.run(spec, out=tmp_path / "elsewhere", store=url, observer=elsewhere)
    assert elsewhere.computed == []


ASKING_MODEL = '''
from dataclasses import dataclass

from recbias.models.baselines import MostPop


@dataclass(frozen=True, kw_only=True)
class Asking(MostPop):
    """Popularity, by a model that may send requests; it notes the node where it is fitted."""

    marker: str = ""

    def plan_requests(self, queries, k, data):
        return []

    def fit(self, data, rng):
        import ray

        from pathlib import Path

        Path(self.marker).write_text(ray.get_runtime_context().get_node_id())
        return super().fit(data, rng)
'''


@pytest.mark.slow  # it starts a cluster
def test_a_model_that_sends_requests_runs_on_a_head_without_cores(
    tmp_path: Path, cluster: Any
) -> None:
    import ray

    cluster.add_node(num_cpus=1)
    model, marker = tmp_path / "asking.py", tmp_path / "marker"
    model.write_text(ASKING_MODEL, encoding="utf-8")
    asking = {"name": f"{model}:Asking", "marker": str(marker)}
    spec = make_small_spec(models=["MostPop", asking])
    recbias.run(spec, out=tmp_path / "a", executor="ray", store=f"file://{tmp_path}/shared")
    assert marker.read_text() == ray.get_runtime_context().get_node_id()


def write_other_version(folder: Path) -> None:
    """Write a recbias of version 0.0.9 into a folder."""
    other = folder / "recbias"
    source = Path(recbias.__file__).parent
    shutil.copytree(source, other, ignore=shutil.ignore_patterns("__pycache__"))
    text = (other / "__init__.py").read_text(encoding="utf-8")
    changed = text.replace(f'"{recbias.__version__}"', '"0.0.9"')
    (other / "__init__.py").write_text(changed, encoding="utf-8")


@contextmanager
def start_node_without(folder: Path, cluster: Any) -> Iterator[None]:
    """Start a node of one core to which a folder is empty, as on a machine without the data."""
    import ray

    hide = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
    if not shutil.which("unshare") or subprocess.run([*hide, "true"], check=False).returncode:
        pytest.skip("this system hides no folder from a process")
    start = f"{sys.executable} -m ray.scripts.scripts start --block --num-cpus=1"
    command = f"mount -t tmpfs none {folder} && exec {start} --address={cluster.address}"
    n_nodes = len(ray.nodes())
    with (folder.parent / "node.log").open("w") as log:
        process = subprocess.Popen([*hide, command], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 120
        while len(ray.nodes()) == n_nodes and time.monotonic() < deadline:
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait()


DATA_SPEC = """\
name: small
dataset: {name: tables, interactions: data/ratings.csv}
split: {name: random, test: 0.2}
k: 5
models:
  - MostPop
  - {name: lists, path: data/lists.csv, seen: keep}
metrics: [nDCG]
"""


def write_data(folder: Path) -> None:
    """Write a file of ratings, and one of lists, into a folder."""
    folder.mkdir()
    rng = np.random.default_rng(5)
    ratings = [f"{user},{item}" for user in range(40) for item in rng.choice(30, 8, replace=False)]
    lists = [f"{user},{item},{item + 1}" for user in range(40) for item in range(5)]
    for name, header, lines in (
        ("ratings.csv", "user_id,item_id", ratings),
        ("lists.csv", "user_id,item_id,rank", lists),
    ):
        (folder / name).write_text("\n".join([header, *lines, ""]), encoding="utf-8")


@pytest.mark.slow  # it starts a cluster and runs commands on it
def test_the_command_names_a_node_that_lacks_the_data_or_has_another_recbias(
    tmp_path: Path, cluster: Any
) -> None:
    data, spec = tmp_path / "data", tmp_path / "spec.yaml"
    write_data(data)
    spec.write_text(DATA_SPEC, encoding="utf-8")
    environment = {"RAY_ADDRESS": cluster.address}
    words = ("run", spec.name, "--executor", "ray", "--out")
    with start_node_without(data, cluster):
        lacking = run_recbias(*words, "a", folder=tmp_path, env=environment)
    failures = [line for line in lacking.err.splitlines() if line.startswith("failed: ")]
    assert lacking.code == 2, lacking.err
    assert len(failures) == 1, lacking.err
    path = re.escape(str(data / "lists.csv"))
    assert re.fullmatch(rf"failed: ask lists: node \S+ lacks {path}", failures[0])
    assert "help: put the data there under the same path" in lacking.err
    assert "MostPop" in lacking.out  # the dataset is in the store: the node needs no ratings

    write_other_version(tmp_path / "other")
    cluster.add_node(num_cpus=1, env_vars={"PYTHONPATH": str(tmp_path / "other")})
    refused = run_recbias(*words, "b", folder=tmp_path, env=environment)
    version = recbias.__version__
    assert refused.code == 2, refused.err
    assert refused.err.count("error: ") == 1
    assert re.search(
        rf"error: node \S+ has recbias 0.0.9, this machine has {version}", refused.err
    )
    assert f"help: pip install recbias=={version} there, or 0.0.9 here" in refused.err
    assert "load" not in refused.err  # it is refused before the data are read
    assert not [*(tmp_path / "b").glob("small/*/metrics.csv")]


@pytest.mark.slow  # it starts two clusters
def test_the_command_starts_a_ray_of_its_own_beside_another(tmp_path: Path, cluster: Any) -> None:
    assert cluster.address
    write_data(tmp_path / "data")
    (tmp_path / "spec.yaml").write_text(DATA_SPEC, encoding="utf-8")
    done = run_recbias("run", "spec.yaml", "--executor", "ray", "--workers", "1", folder=tmp_path)
    assert done.code == 0, done.err


def make_file_stage(path: Path) -> Stage:
    return Stage("fit", "fit", "0" * 64, lambda: None, (), Keys(), files={path: ""})


def test_a_node_that_lacks_the_files_of_a_task_names_them(tmp_path: Path) -> None:
    store, path = Store(tmp_path / "store"), tmp_path / "lists.csv"
    job = Job(make_file_stage(path))
    failure = find_lacking_files(job, store)
    assert failure is not None
    assert re.fullmatch(rf"node \S+ lacks {re.escape(str(path))}", failure.message)
    assert failure.help == "put the data there under the same path"
    path.touch()
    assert find_lacking_files(job, store) is None


def test_a_task_on_another_node_has_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    remote = RemoteStore(tmp_path / "store", "file:///somewhere")
    assert take_store(remote, node="a", origin="a").folder == tmp_path / "store"
    assert take_store(remote, node="b", origin="a").folder == tmp_path / "recbias-b" / "store"
    local = Store(tmp_path / "store")
    assert take_store(local, node="b", origin="a") is local
