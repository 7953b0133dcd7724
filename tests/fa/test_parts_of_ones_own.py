"""Parts of the user's that return something else than they must: refused by name, where they enter."""

import numpy as np
import pytest
import torch

from sfr_fa.agents.gpi_policies import all_policies
from sfr_fa.engines import make_engine
from sfr_fa.tasks import LinearTask
from tests.fa.agent_checks import everything, small_agent, some_task, started
from tests.fa.engine_checks import Corridor, WritesOver
from tests.refusals import refused

NOT_INDICES = (
    None, "all", 0, [], [0], [0.0, 1.0], [True, True], [1, 0, 1], [-1, 1], [0, 2], [2, 1], [[0, 1]],
    [None, 1], [[0], [0, 1]], np.array([0, np.nan]), torch.tensor([0, 0]), {0, 1}, 10**30,
)  # fmt: skip


@pytest.mark.parametrize("chosen", NOT_INDICES, ids=repr)
def test_a_rule_that_chooses_what_is_no_policy_is_refused_before_the_task(chosen):
    """Compiled code reads weights by these indices, so that none may lie outside."""
    agent = started("SFR")
    agent.gpi_policies = lambda readouts: chosen
    with refused("gpi_policies", unchanged=lambda: everything(agent)):
        agent.start_task(some_task("SFR", np.random.default_rng(0)))


def test_a_rule_that_fails_is_named():
    agent = small_agent("SFR", gpi_policies=lambda readouts: readouts[7])
    with refused("gpi_policies", "IndexError"):
        agent.start_task(some_task("SFR", np.random.default_rng(0)))


@pytest.mark.parametrize("chosen", [[0, 1], (1,), np.array([1], dtype=np.uint8), torch.tensor([0, 1])])
def test_a_rule_may_answer_with_any_kind_of_list(chosen):
    agent = started(
        "SFR", gpi_policies=lambda readouts: all_policies(readouts) if len(readouts) < 2 else chosen
    )
    agent.start_task(some_task("SFR", np.random.default_rng(0)))
    assert agent.participants.tolist() == [int(k) for k in chosen]


NOT_LOSSES = (
    lambda e: None, lambda e: 1.0, lambda e: e, lambda e: e.sum().detach(), lambda e: e.sum().item(),
    lambda e: "much", lambda e, f: e.sum(), lambda e: e.nothing,
)  # fmt: skip
NOT_CLIPS = (lambda v: None, lambda v: 0.0, lambda v: v.sum(), lambda v: v[0], lambda: 0)


@pytest.mark.parametrize(
    ("name", "part"), [*(("loss", part) for part in NOT_LOSSES), *(("clip", part) for part in NOT_CLIPS)]
)
def test_a_loss_or_clip_that_cannot_be_learned_from_is_refused(name, part):
    with refused(name):
        small_agent("SFR", **{name: part})


# --- Environments -------------------------------------------------------------------------------------

NOT_REWARDS = (None, "1", b"1", [1.0], np.ones(1), np.ones((2, 2)), {}, 1j, np.datetime64(0, "s"), Exception)
NOT_FLAGS = (
    None, "no", "", [], [False], np.zeros(1, dtype=bool), np.zeros(2, dtype=bool), 2, -1, 0.5, float("nan"),
)  # fmt: skip
NOT_INFOS = (None, "features", 3, [("features", 0)], np.zeros(3))
WRONG = (
    *(({1: value}, "reward") for value in NOT_REWARDS),
    *(({place: value}, name) for place, name in ((2, "terminated"), (3, "truncated")) for value in NOT_FLAGS),
    *(({4: value}, "info") for value in NOT_INFOS),
)


class Wrong(Corridor):
    """Answers a step with other entries, or with something else altogether."""

    def __init__(self):
        super().__init__(size=5)
        self.entries, self.whole, self.start = {}, None, None

    def reset(self, **options):
        answer = super().reset(**options)
        return answer if self.start is None else self.start(answer)

    def step(self, action):
        answer = super().step(action)
        if self.whole is not None:
            return self.whole(answer)
        return tuple(self.entries.get(k, entry) for k, entry in enumerate(answer))


def learner(**answers):
    environment = Wrong()
    engine = make_engine("reference", environment, "SF", gamma=0.9, learning_rate=0.1)
    environment.__dict__ |= answers
    return engine, LinearTask(np.ones(environment.feature_space.dimensions))


@pytest.mark.parametrize(("entries", "name"), WRONG, ids=repr)
def test_a_step_with_an_entry_of_another_type_is_refused_by_name(entries, name):
    engine, task = learner(entries=entries)
    with refused("environment", name):
        engine.run_task(task, 3)
    engine.environment.entries = {}
    assert engine.continue_task(3).steps == 3
    engine.environment.entries = entries
    with refused("environment", name):
        engine.evaluate(task, episodes=1)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        *(({"whole": whole}, ("step", "terminated"))
          for whole in (lambda a: None, lambda a: a[:4], lambda a: a[0], lambda a: "step", list)),
        *(({"start": start}, ("reset", "info"))
          for start in (lambda a: None, lambda a: a[0], lambda a: (*a, 0))),
    ],
)  # fmt: skip
def test_a_step_or_reset_of_another_form_is_refused(answers, words):
    engine, task = learner(**answers)
    with refused("environment", *words):
        engine.run_task(task, 3)


def test_an_environment_may_write_over_the_observations_that_it_has_returned():
    weights = []
    for environment in (Corridor(size=5), WritesOver()):
        engine = make_engine("reference", environment, "SF", gamma=0.9, learning_rate=0.1, epsilon=0.5)
        engine.run_task(LinearTask(np.ones(environment.feature_space.dimensions)), 50)
        weights.append(engine.agent.policies.parameters["weight"].numpy())
    np.testing.assert_array_equal(*weights)


class Restless(Corridor):
    """Goes where a generator of its own wants, which follows the seed of a reset."""

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.generator = np.random.default_rng(seed)
        return super().reset(seed=seed, options=options)

    def step(self, action):
        return super().step(int(self.generator.integers(2)))


def test_what_an_environment_draws_by_itself_depends_on_the_seed_too(tmp_path):
    def engine(seed):
        return make_engine("reference", Restless(size=5), "SF", seed=seed, gamma=0.9, epsilon=0.0)

    def earned(learner):
        return learner.run_task(LinearTask([1]), 50)

    one, same, other = engine(1), engine(1), engine(2)
    first = [earned(learner).total_reward for learner in (one, same, other)]
    assert first[0] == first[1] != first[2]
    one.save(tmp_path / "engine")
    other.load(tmp_path / "engine")
    assert earned(one).total_reward == earned(same).total_reward == earned(other).total_reward
