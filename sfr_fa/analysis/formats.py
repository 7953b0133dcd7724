"""Numbers as tables and sentences show them."""

from __future__ import annotations

import math

from sfr_fa.statistics import Interval, Summary

DIGITS = 3
"""Of a p-value, as in the paper."""
UNDER = f"<{10.0**-DIGITS:g}"


def number(value: float) -> str:
    """Four digits, or whole numbers where there are more."""
    if not math.isfinite(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def p_value(value: float) -> str:
    """Three digits, or that it is less."""
    if math.isnan(value):
        return "-"
    return UNDER if value < 10.0**-DIGITS else f"{value:.{DIGITS}f}"


def p_relation(value: float) -> str:
    """With the sign of a comparison: = 0.021 or < 0.001."""
    text = p_value(value)
    return text.replace("<", "< ") if text.startswith("<") else f"= {text}"


def plus_minus(described: Summary | None) -> str:
    """Mean and standard error: 812 ± 6."""
    if described is None:
        return "-"
    error = described.standard_error
    if not math.isfinite(error):
        return number(described.mean)
    digits = 0 if error >= 10 else 1
    return f"{described.mean:,.{digits}f} ± {error:,.{digits}f}"


def interval(found: Interval) -> str:
    """2,457 [2,387, 2,566]"""
    ends = f" [{number(found.low)}, {number(found.high)}]" if math.isfinite(found.low) else ""
    return number(found.estimate) + ends


def share(interval: Interval, digits: int = 2) -> str:
    """0.86 [0.84, 0.88]"""
    if not math.isfinite(interval.estimate):
        return "-"
    text = f"{interval.estimate:.{digits}f}"
    if math.isfinite(interval.low):
        text += f" [{interval.low:.{digits}f}, {interval.high:.{digits}f}]"
    return text


def percent(interval: Interval, digits: int = 0) -> str:
    """86 % [84, 88]"""
    if not math.isfinite(interval.estimate):
        return "undefined, because a return is not positive"
    ends = (interval.low, interval.high)
    shown = ", ".join(f"{100 * end:.{digits}f}" for end in ends if math.isfinite(end))
    return f"{100 * interval.estimate:.{digits}f} %" + (f" [{shown}]" if shown else "")
