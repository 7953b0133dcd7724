"""A film of a trained agent: it has the frames asked for, and bad input gets a sentence."""

import gymnasium
import numpy as np
import pytest
from PIL import Image, ImageColor, ImageSequence

from experiments.watch import Caption, Options, Scene, main, play
from sfr_fa.engines import make_engine
from sfr_fa.environments import rendering
from sfr_fa.tasks import TableTask, sample_general_task
from sfr_theory.errors import InputError


@pytest.mark.parametrize(("environment", "agent"), [("object-collection", "MB SFR-R"), ("racer", "CSFR")])
def test_a_film_is_written(environment, agent, tmp_path, capsys):
    path = tmp_path / "film.gif"
    options = Options(
        environment=environment, agent=agent, tasks=2, steps=20, frames=5, size=64, output=str(path),
        engine="reference",
    )  # fmt: skip
    assert main(options) == 0
    with Image.open(path) as film:
        assert film.size == (64, 64 + 19)  # the caption is three tenths of the width
        # Pictures that are alike become one that is shown longer, so the length of the film is what counts.
        assert sum(frame.info["duration"] for frame in ImageSequence.Iterator(film)) == 5 * 60
    assert "task 2: reward" in capsys.readouterr().out


def test_the_caption_shows_rewards_score_and_policy():
    """Each is told from the pixels of its place when that alone changes."""
    env = gymnasium.make("sfr_fa:sfr/ObjectCollection-v0", render_mode="rgb_array")
    env.reset(seed=0)
    space, picture = env.unwrapped.feature_space, env.render()

    def strip(rewards=(0.0, 0.5, -0.5, 0.2, 0.1, 1.0), score=1.0, followed=1):
        caption = Caption(env, TableTask(space, np.array(rewards)), 3, 300)
        image = np.asarray(caption.below(Scene(picture, score, 0.0, followed)))
        assert image.shape == (390, 300, 3)
        return image[300:]

    plain, third = strip(), 30

    def changed_thirds(other):
        rows = np.flatnonzero((other != plain).any(axis=(1, 2)))
        return sorted({int(row) // third for row in rows})

    assert changed_thirds(strip(rewards=(0.0, 0.9, -0.5, 0.2, 0.1, 1.0))) == [0]
    assert changed_thirds(strip(score=2.0)) == [1]
    assert changed_thirds(strip(followed=2)) == [2]
    assert changed_thirds(strip(followed=None)) == [2]
    highlight = np.array(ImageColor.getrgb(rendering.RACER))
    columns = [np.flatnonzero((strip(followed=k) == highlight).all(axis=2).any(axis=0)) for k in range(3)]
    assert columns[0].max() < columns[1].min() < columns[1].max() < columns[2].min()


def test_the_score_adds_up_and_the_followed_policy_is_that_of_gpi():
    env = gymnasium.make("sfr_fa:sfr/ObjectCollection-v0", render_mode="rgb_array")
    engine = make_engine("reference", env, "SFR", seed=0, epsilon=0.3)
    task = sample_general_task(np.random.default_rng(0))
    for _ in range(2):
        engine.run_task(task, 20)
    film = list(play(env, engine.agent, task, 60, seed=1))
    np.testing.assert_allclose(np.cumsum([scene.reward for scene in film]), [s.score for s in film])
    followed = {scene.followed for scene in film}
    assert None in followed
    assert followed <= {None, 0, 1}
    assert len(followed) > 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"agent": "QQ"}, "there is no agent 'QQ'; the agents are Q, SF"),
        ({"agent": "SFR", "environment": "racer"}, "CSFR"),
        ({"tasks": 0}, "--tasks is 0"),
        ({"size": 1}, "--size is 1; it must be 16 to"),
        ({"tasks": 10**30}, "--tasks is 1.*10,000"),
        ({"output": "watch.mp4"}, "watch.mp4.*GIF"),
    ],
)
def test_bad_input(changes, message):
    with pytest.raises(InputError, match=message):
        main(Options(**changes))
