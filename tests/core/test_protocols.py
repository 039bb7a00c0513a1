from __future__ import annotations

import numpy as np

from recbias.core.evidence import Embeddings
from recbias.core.plugins import HasEmbeddings, Restores, State, Storable


class Fitted:
    def state(self) -> State:
        return {"weights": np.zeros(1)}

    def embeddings(self) -> Embeddings:
        return Embeddings(None, None)


def test_the_methods_of_a_fitted_model_decide_its_protocols() -> None:
    assert isinstance(Fitted(), Storable)
    assert isinstance(Fitted(), HasEmbeddings)
    assert not isinstance(Fitted(), Restores)
