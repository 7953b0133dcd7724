"""Numbers in words, alike in every table: durations and rates."""

from __future__ import annotations

from collections.abc import Mapping

SYMBOLS = {"learning_rate": "α", "reward_learning_rate": "α_R", "model_learning_rate": "β"}


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    for unit, name in ((3600.0, "h"), (60.0, "min"), (1.0, "s"), (0.001, "ms")):
        count = seconds / unit
        # What rounds up to the next unit is better told in that.
        if count >= 0.9995 or name == "ms":
            break
    return f"{count:,.0f} {name}" if count >= 99.95 else f"{count:.3g} {name}"


def rate_text(rate: float | str) -> str:
    """A rate, or the name of its schedule."""
    return rate if isinstance(rate, str) else f"{rate:g}"


def rates_text(rates: Mapping[str, float | str]) -> str:
    """The rates of an agent, by their symbols."""
    return ", ".join(f"{SYMBOLS.get(name, name)} {rate_text(rate)}" for name, rate in rates.items())
