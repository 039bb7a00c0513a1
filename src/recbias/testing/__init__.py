"""What a plug-in must keep, as checks for its tests: ours, and those of other packages.

::

    from recbias.testing import check_recommender

    def test_it_keeps_the_contract() -> None:
        check_recommender(MyModel(neighbors=5))

A check returns nothing where all is well and raises BrokenContract, with what was found, else.
"""

from __future__ import annotations

from recbias.testing.metrics import check_metric
from recbias.testing.recommenders import check_recommender
from recbias.testing.small_world import checkerboard, everybody, random_evidence

__all__ = ["check_metric", "check_recommender", "checkerboard", "everybody", "random_evidence"]
