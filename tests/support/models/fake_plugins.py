"""Plug-ins of every kind without behaviour, with settings of every type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Gt, Interval, MinLen

from recbias.core.errors import Contradiction, OutOfRange
from recbias.core.plugins import InputFile
from recbias.core.registry import Registry


@dataclass(frozen=True, kw_only=True)
class ML1M:
    """Films that people rated. It has two sentences.

    Args:
        side: Side tables to read.
        bad_lines: What to do with a line that cannot be read:
            stop, or skip and count it.
    """

    side: tuple[Literal["overview", "cast"], ...] = ()
    bad_lines: Literal["error", "skip"] = "error"


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Your own tables."""

    interactions: InputFile | None = None
    extras: tuple[InputFile, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """Keep high ratings."""

    at_least: float


@dataclass(frozen=True, kw_only=True)
class KCore:
    """Keep the k-core."""

    k: Annotated[int, Gt(0)] = 10


@dataclass(frozen=True, kw_only=True)
class RandomSplit:
    """Divide at random."""

    test: Annotated[float, Interval(gt=0, lt=1)] = 0.2
    validation: Annotated[float, Ge(0)] = 0.0
    folds: Annotated[int, Ge(1)] = 1

    def __post_init__(self) -> None:
        if self.test + self.validation >= 1:
            message = (
                f"test {self.test} and validation {self.validation} leave nothing to train on"
            )
            raise Contradiction(message, remedy="make them smaller")


@dataclass(frozen=True, kw_only=True)
class Users:
    """Ask users."""

    where: str = ""
    sample: Annotated[int, Gt(0)] | None = None


@dataclass(frozen=True, kw_only=True)
class MostPop:
    """Recommend what is popular."""


@dataclass(frozen=True, kw_only=True)
class ItemKNN:
    """Recommend items like the user's.

    Args:
        neighbors: How many neighbours an item has.
        similarity: How like two items are.
        shrink: Pulls the similarity of rare items down.
        binary: Whether ratings count as one.
    """

    neighbors: Annotated[int, Gt(0)] = 50
    similarity: Literal["cosine", "jaccard", "dice"] = "cosine"
    shrink: Annotated[float, Ge(0)] = 0.0
    binary: bool = True


@dataclass(frozen=True, kw_only=True)
class SLIM:
    """Learn sparse weights."""

    alpha: Annotated[float, Gt(0)] = 1.0
    l1_ratio: Annotated[float, Interval(ge=0, le=1)] = 0.1
    neighbors: Annotated[int, Gt(0)] | None = None


@dataclass(frozen=True, kw_only=True)
class Lists:
    """Lists made elsewhere."""

    path: InputFile


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where a language model answers."""

    provider: Literal["openai", "anthropic"] = "openai"
    temperature: Annotated[float, Ge(0)] = 0.0
    model: str


@dataclass(frozen=True, kw_only=True)
class WOK:
    """Ask a language model."""

    llm: Endpoint
    stops: Annotated[tuple[Endpoint, ...], MinLen(1)] | None = None
    direction: Literal["centroid", "svc"] | InputFile = "centroid"


@dataclass(frozen=True, kw_only=True)
class Names:
    """Label items by first names."""

    from_: Literal["cast", "overview"]


@dataclass(frozen=True, kw_only=True)
class NDCG:
    """Reward hits by rank."""

    k: Annotated[int, Gt(0)] | None = None


@dataclass(frozen=True, kw_only=True)
class APLT:
    """Share of the long tail."""

    k: Annotated[int, Gt(0)] | None = None
    head: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.head < 1:
            message = f"must be between 0 and 1, found {self.head}"
            raise OutOfRange(message, where="head", remedy="the default is 0.2")


@dataclass(frozen=True, kw_only=True)
class HitBad:
    """Hits on stereotyped items."""

    label: str
    k: Annotated[int, Gt(0)] | None = None


@dataclass(frozen=True, kw_only=True)
class Gini:
    """How unevenly items are recommended."""


@dataclass(frozen=True, kw_only=True)
class PairedT:
    """Student's t over pairs."""

    alpha: Annotated[float, Interval(gt=0, lt=1)] = 0.05
    correction: Literal["none", "bonferroni", "holm", "bh"] = "bonferroni"
    family: Literal["metric", "report"] | Annotated[int, Gt(0)] = "metric"


@dataclass(frozen=True, kw_only=True)
class Reverse:
    """Turn the candidates around."""

    dial: ClassVar[str] = "strength"

    strength: Annotated[float, Interval(ge=0, le=1)] = 0.5
    candidates: Annotated[int, Gt(0)] = 100


class NoDataclass:
    """Not a plug-in."""


def make_registry(kind: str, group: str, **names: str) -> Registry:
    table = {
        name.replace("__", "-"): f"support.models.fake_plugins:{cls}"
        for name, cls in names.items()
    }
    return Registry(kind, table, f"recbias.no_such_group.{group}")


REGISTRIES = {
    "datasets": make_registry("dataset", "datasets", ml__1m="ML1M", tables="Tables"),
    "filters": make_registry("filter", "filters", threshold="Threshold", k_core="KCore"),
    "splits": make_registry("split", "splits", random="RandomSplit"),
    "queries": make_registry("query source", "queries", users="Users"),
    "models": Registry(
        "model",
        {
            "MostPop": "support.models.fake_plugins:MostPop",
            "ItemKNN": "support.models.fake_plugins:ItemKNN",
            "SLIM": "support.models.fake_plugins:SLIM",
            "lists": "support.models.fake_plugins:Lists",
            "WOK": "support.models.fake_plugins:WOK",
            "ALS": "no_such_package_of_anyone.models:ALS",
            "Broken": "support.models.fake_plugins:NoDataclass",
        },
        "recbias.no_such_group.models",
    ),
    "rerankers": make_registry("re-ranker", "rerankers", reverse="Reverse"),
    "detectors": make_registry("detector", "detectors", names="Names"),
    "metrics": make_registry(
        "metric", "metrics", nDCG="NDCG", APLT="APLT", HIT_BAD="HitBad", Gini="Gini"
    ),
    "tests": make_registry("test", "tests", paired_t="PairedT"),
}
