"""One Hypothesis profile for everybody: no deadline, because a first call may compile."""

from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "sfr", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
# For mutants (tests/meta/mutation.py): a failure is all that is asked for, and soon.
settings.register_profile(
    "mutants", settings.get_profile("sfr"), phases=[Phase.explicit, Phase.generate], max_examples=20
)
settings.load_profile("sfr")
