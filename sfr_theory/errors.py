"""The one exception that bad input raises, and how its sentences quote a value.

Its message is a sentence for the user: it names the place and the fix. Command lines print it
and exit with code 2; library users catch it as a `ValueError`.
"""


class InputError(ValueError):
    """Something a user handed in is wrong; the message says where and what to do."""


def in_short(value: object) -> str:
    """A value inside a sentence: on one line, and cut off where it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 200 else f"{text[:200]}..."
