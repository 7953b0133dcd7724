"""The one exception that bad input raises.

Its message is a sentence for the user: it names the place and the fix. Command lines print it
and exit with code 2; library users catch it as a `ValueError`.
"""


class InputError(ValueError):
    """Something a user handed in is wrong; the message says where and what to do."""
