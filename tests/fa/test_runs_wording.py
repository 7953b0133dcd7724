"""Durations and rates as tables show them."""

import pytest

from sfr_fa.runs.wording import duration, rates_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.02, "20 ms"), (59, "59 s"), (90, "1.5 min"), (9000, "2.5 h"), (0, "0 ms"),
        (0.9999, "1 s"), (3599.9, "1 h"), (0.99, "990 ms"), (5_436_000, "1,510 h"),
    ],
)  # fmt: skip
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_rates():
    assert rates_text({"learning_rate": 0.005, "model_learning_rate": 0.4}) == "α 0.005, β 0.4"
    assert rates_text({"of_my_own": 2}) == "of_my_own 2"
