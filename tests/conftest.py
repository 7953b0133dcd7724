"""One Hypothesis profile for everybody: no deadline, because a first call may compile."""

from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "sfr", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile("no-shrinking", settings.get_profile("sfr"), phases=[Phase.generate])
settings.load_profile("sfr")
