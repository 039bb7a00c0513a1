from __future__ import annotations

from recbias.config.settings import Parameter, list_parameters
from support.models import fake_plugins


def test_parameters_describe_type_default_and_range() -> None:
    assert list_parameters(fake_plugins.ItemKNN)[:3] == [
        Parameter(
            name="neighbors",
            type="a whole number",
            default="50",
            range="above 0",
            doc="How many neighbours an item has.",
            needed=False,
        ),
        Parameter(
            name="similarity",
            type="one of cosine, jaccard, dice",
            default="cosine",
            range="",
            doc="How like two items are.",
            needed=False,
        ),
        Parameter(
            name="shrink",
            type="a number",
            default="0.0",
            range="at least 0",
            doc="Pulls the similarity of rare items down.",
            needed=False,
        ),
    ]
