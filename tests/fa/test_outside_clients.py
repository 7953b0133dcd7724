"""Programs of others run on our environments, and our adapters on theirs."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete, Tuple
from gymnasium.wrappers import TransformReward
from stable_baselines3 import DQN
from stable_baselines3.common.env_checker import check_env

from experiments.peers import ROOMS, mo_make
from sfr_fa.agents import FeatureSubnetworks, LinearPerAction
from sfr_fa.engines import make_engine
from sfr_fa.environments.adapters import FeaturesFromVectorReward, OneHot, WithFeatures
from sfr_fa.environments.registration import ENVIRONMENTS
from sfr_fa.feature_spaces import BoxFeatures, DiscreteFeatures
from sfr_fa.tasks import FunctionTask, LinearTask, TableTask
from tests.refusals import refused

FOUR_ROOM_FEATURES = DiscreteFeatures(np.vstack([np.zeros(3), np.eye(3), np.ones(3)]))
"""Nothing, an object of each of three kinds, and the goal, which counts for all three."""


class TestStableBaselines:
    @pytest.mark.parametrize("name", ENVIRONMENTS)
    def test_its_checker_accepts_the_environments(self, name):
        check_env(gymnasium.make(name, render_mode="rgb_array"), warn=True)

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ENVIRONMENTS)
    def test_dqn_takes_a_thousand_steps(self, name):
        env = gymnasium.make(name, max_episode_steps=300)
        model = DQN("MlpPolicy", env, learning_starts=100, seed=0, device="cpu")
        model.learn(1000)
        assert model.num_timesteps == 1000
        observation, _ = env.reset(seed=0)
        action, _ = model.predict(observation)
        assert env.action_space.contains(action[()])


class TestVectorReward:
    def test_four_room_with_a_table_of_its_discrete_features(self):
        utility = TableTask(FOUR_ROOM_FEATURES, np.array([0.0, 1.0, -1.0, 0.5, 2.0]))
        plain, wrapped = (mo_make("four-room-v0") for _ in range(2))
        env = FeaturesFromVectorReward(wrapped, utility, FOUR_ROOM_FEATURES)
        seen = self.compare(plain, env, 3000)
        assert {index for index, _ in seen} >= {0, 1, 2, 3}
        assert all(reward == utility.rewards[index] for index, reward in seen)

    def test_four_room_in_the_box_it_declares(self):
        env = FeaturesFromVectorReward(mo_make("four-room-v0"), LinearTask(np.array([1.0, -1.0, 0.5])))
        assert env.feature_space == BoxFeatures(np.zeros(3), np.ones(3))
        env.reset(seed=0)
        *_, info = env.step(0)
        assert "feature_index" not in info

    def test_deep_sea_treasure_with_a_utility_that_is_not_linear(self):
        # Diminishing worth of treasure, and a price for each step.
        utility = FunctionTask(lambda phi: np.sqrt(phi[..., 0]) + 0.1 * phi[..., 1])
        plain, wrapped = (mo_make("deep-sea-treasure-v0") for _ in range(2))
        env = FeaturesFromVectorReward(wrapped, utility)
        assert isinstance(env.feature_space, BoxFeatures)
        # The price of a step is always -1; its dimension reaches to 0.
        np.testing.assert_allclose(env.feature_space.low, [0.0, -1.0])
        np.testing.assert_allclose(env.feature_space.high, [23.7, 0.0], rtol=1e-6)
        rewards = [reward for _, reward in self.compare(plain, env, 500)]
        assert min(rewards) == pytest.approx(-0.1)
        assert max(rewards) > 0.5

    def compare(self, plain, env, steps):
        """Walk both alike; features are the vector reward, everything else is untouched."""
        actions = np.random.default_rng(0).integers(4, size=steps)
        plain.reset(seed=3)
        env.reset(seed=3)
        seen = []
        for action in actions:
            there, vector, *ends, _ = plain.step(action)
            here, reward, *our_ends, info = env.step(action)
            np.testing.assert_array_equal(here, there)
            np.testing.assert_array_equal(info["features"], vector)
            assert our_ends == ends
            assert isinstance(reward, float)
            assert reward == env.task.reward(vector)
            seen.append((info.get("feature_index"), reward))
            if any(ends):
                plain.reset()
                env.reset()
        return seen

    def test_the_utility_can_change(self):
        env = FeaturesFromVectorReward(mo_make("deep-sea-treasure-v0"), LinearTask(np.array([1.0, 0.0])))
        env.reset(seed=0, options={"task": LinearTask(np.array([0.0, 2.0]))})
        assert env.step(3)[1] == -2.0
        env.set_task(LinearTask(np.array([0.0, 3.0])))
        assert env.step(3)[1] == -3.0
        with refused("vectors of 3 features"):
            env.set_task(LinearTask(np.ones(3)))
        assert env.step(3)[1] == -3.0

    def test_what_cannot_be_wrapped_gets_a_sentence(self):
        with refused("no reward_space"):
            FeaturesFromVectorReward(gymnasium.make("CartPole-v1"), LinearTask(np.ones(2)))
        env = mo_make("four-room-v0")
        env.unwrapped.reward_space = Box(-np.inf, np.inf, (3,))
        with refused("not bounded; pass the feature_space"):
            FeaturesFromVectorReward(env, LinearTask(np.ones(3)))


ONE_LINE = {
    "deep-sea-treasure": lambda: OneHot(mo_make("deep-sea-treasure-v0")),
    "resource-gathering": lambda: OneHot(mo_make("resource-gathering-v0")),
    "four-room": lambda: OneHot(mo_make("four-room-v0"), ROOMS),
    "fruit-tree": lambda: OneHot(mo_make("fruit-tree-v0")),
    # Amounts of ore are drawn from a normal distribution; features are amounts to one digit.
    "minecart": lambda: TransformReward(mo_make("minecart-v0"), lambda phi: np.round(phi, 1)),
}
"""The line of examples/deep_sea_treasure.py that other environments change."""


class TestMoGymnasium:
    @pytest.mark.parametrize("agent", ["SFR", "SF"])
    @pytest.mark.parametrize("name", ONE_LINE)
    def test_the_example_with_another_environment(self, name, agent):
        env = ONE_LINE[name]()
        space = DiscreteFeatures.observed(env, steps=2000, seed=0)
        utility = LinearTask(np.ones(space.dimensions))
        engine = make_engine(
            "reference", FeaturesFromVectorReward(env, utility, space), agent, gamma=0.99,
            approximator=FeatureSubnetworks if name == "minecart" else LinearPerAction,
        )  # fmt: skip
        for task in (utility, FunctionTask(lambda phi: phi[..., 0] * phi[..., 1])):
            result = engine.run_task(task, steps=30)
            assert (result.steps, result.diverged) == (30, False)
        assert engine.values(env.reset(seed=0)[0]).shape == (2, env.action_space.n)

    def test_one_hot_tells_every_state_apart(self):
        env = OneHot(mo_make("resource-gathering-v0"))
        assert env.observation_space == Box(0, 1, (6**4,), np.float32)
        seen = {}
        env.reset(seed=0)
        for action in np.random.default_rng(0).integers(4, size=500):
            code, _, terminated, truncated, _ = env.step(action)
            assert code.sum() == 1
            state = tuple(np.ravel(env.unwrapped.get_state()).tolist())
            assert seen.setdefault(int(code.argmax()), state) == state
            if terminated or truncated:
                env.reset()
        assert len(set(seen.values())) == len(seen) > 20

    def test_blocks_are_side_by_side(self):
        env = OneHot(mo_make("four-room-v0"), ROOMS)
        code, _ = env.reset(seed=0)
        plain = env.unwrapped.state_to_array(env.unwrapped.state)
        blocks = [code[:196], *code[196:].reshape(12, 14)]
        assert [int(block.argmax()) for block in blocks] == [plain[0] * 14 + plain[1], *plain[2:]]
        assert code.sum() == 13

    def test_one_hot_of_discrete_spaces(self):
        lake = OneHot(gymnasium.make("FrozenLake-v1"))
        np.testing.assert_array_equal(lake.reset(seed=0)[0], np.eye(16)[0])
        cards = OneHot(_Shows(MultiDiscrete([2, 3], start=[-1, 6])))
        np.testing.assert_array_equal(cards.observation(np.array([0, 7])), np.eye(6)[4])

    @pytest.mark.parametrize("space", [MultiBinary(2), Box(0, 1, (2,), bool)], ids=repr)
    def test_one_hot_of_flags(self, space):
        flags = OneHot(_Shows(space), blocks=[[0], [1]])
        np.testing.assert_array_equal(flags.observation(np.array([1, 0], space.dtype)), [0, 1, 1, 0])

    @pytest.mark.parametrize(
        ("make", "place", "fix"),
        [
            (lambda: OneHot(mo_make("four-room-v0")), "blocks", "smaller"),
            (lambda: OneHot(mo_make("four-room-v0"), [[0, 1]]), "blocks", "each dimension 0 to 13"),
            (lambda: OneHot(mo_make("minecart-v0")), "OneHot", "network"),
            (lambda: OneHot(_Shows(Box(-(2**63), 2**63 - 1, (1,), np.int64))), "OneHot", "up to"),
            (lambda: OneHot(_Shows(Box(0, 2**64 - 1, (1,), np.uint64))), "OneHot", "up to"),
            (lambda: OneHot(_Shows(Tuple([Discrete(2)]))), "OneHot", "FlattenObservation"),
        ],
    )
    def test_states_that_cannot_be_counted_get_a_sentence(self, make, place, fix):
        with refused(place, fix):
            make()


class _Shows(gymnasium.Env):
    """Nothing but a space of observations."""

    action_space = Discrete(2)

    def __init__(self, space):
        self.observation_space = space


class TestAnyEnvironment:
    def test_features_of_wrong_size_get_a_sentence(self):
        space = BoxFeatures(np.zeros(2), np.ones(2))
        task = LinearTask(np.ones(2))
        env = WithFeatures(gymnasium.make("CartPole-v1"), lambda *transition: [1.0], space, task)
        env.reset(seed=0)
        with refused("2 feature dimensions"):
            env.step(0)
