"""Contract checks for the tests of plug-ins, in this package and in others.

::

    from recbias.testing import check_recommender

    def test_my_model_meets_the_contract() -> None:
        check_recommender(MyModel(neighbors=5))

Every check returns None if the plug-in meets the contract of its kind, else raises BrokenContract.
"""

from __future__ import annotations

from recbias.testing.datasets import check_dataset
from recbias.testing.detectors import check_detector
from recbias.testing.metrics import check_metric
from recbias.testing.paired_tests import check_test
from recbias.testing.recommenders import check_recommender
from recbias.testing.small_world import make_checkerboard, make_random_evidence, query_all_users

__all__ = [
    "check_dataset",
    "check_detector",
    "check_metric",
    "check_recommender",
    "check_test",
    "make_checkerboard",
    "make_random_evidence",
    "query_all_users",
]
