from __future__ import annotations

from recbias.models.factorization import BPRMF, PMF
from recbias.models.training import Schedule


def test_schedule_is_defined_by_the_model() -> None:
    schedule = Schedule.from_model(
        BPRMF(epochs=3, batch_size=8, learning_rate=0.5, patience=2), "B", "sgd"
    )
    assert (schedule.name, schedule.optimizer) == ("B", "sgd")
    assert (schedule.epochs, schedule.batch_size, schedule.learning_rate, schedule.patience) == (
        3,
        8,
        0.5,
        2,
    )


def test_schedule_includes_the_settings_of_error_messages() -> None:
    schedule = Schedule.from_model(PMF(embedding_size=7, negatives=2, reg=0.5), "PMF")
    assert schedule.settings == {"embedding_size": 7, "negatives": 2, "reg": 0.5}
