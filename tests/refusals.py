"""Bad input as tests see it: an InputError that names the place and the fix, however it is worded."""

import contextlib

import pytest

from sfr_theory.errors import InputError


@contextlib.contextmanager
def refused(*words, unchanged=lambda: None):
    """What is done inside is refused in a sentence with these words; `unchanged()` is then as before."""
    before = unchanged()
    with pytest.raises(InputError) as caught:
        yield caught
    missing = [word for word in words if word not in str(caught.value)]
    assert not missing, f"{missing} not in: {caught.value}"
    assert unchanged() == before
