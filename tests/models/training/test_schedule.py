from __future__ import annotations

from recbias.models.factorization.bpr import BPRMF
from recbias.models.factorization.pmf import PMF
from recbias.models.training.schedule import Schedule


def test_a_schedule_is_what_the_model_says() -> None:
    made = Schedule.of(BPRMF(epochs=3, batch_size=8, learning_rate=0.5, patience=2), "B", "sgd")
    assert (made.name, made.optimizer) == ("B", "sgd")
    assert (made.epochs, made.batch_size, made.learning_rate, made.patience) == (3, 8, 0.5, 2)


def test_what_may_be_lowered_goes_along() -> None:
    made = Schedule.of(PMF(embedding_size=7, negatives=2, reg=0.5), "PMF")
    assert made.others == {"embedding_size": 7, "negatives": 2, "reg": 0.5}
