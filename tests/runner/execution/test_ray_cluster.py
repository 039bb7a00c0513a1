"""Clusters on this machine: a node is killed, lacks the data, or has another recbias."""

from __future__ import annotations

import importlib.util
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import recbias
from recbias.runner.plan import Observer
from recbias.runner.store import Store
from recbias.runner.store_url import RemoteStore
from recbias.runner.workers import take_store
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


class Warnings(Observer):
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


def test_a_task_on_another_node_has_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    remote = RemoteStore(tmp_path / "store", "file:///somewhere")
    assert take_store(remote, node="a", origin="a").folder == tmp_path / "store"
    assert take_store(remote, node="b", origin="a").folder == tmp_path / "recbias-b" / "store"
    local = Store(tmp_path / "store")
    assert take_store(local, node="b", origin="a") is local
