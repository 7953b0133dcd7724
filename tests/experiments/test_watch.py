"""A film of a trained agent: it has the frames asked for, and bad input gets a sentence."""

import pytest
from PIL import Image, ImageSequence

from experiments.watch import Options, main
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
        assert film.size == (64, 64)
        # Pictures that are alike become one that is shown longer, so the length of the film is what counts.
        assert sum(frame.info["duration"] for frame in ImageSequence.Iterator(film)) == 5 * 60
    assert "task 2: reward" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"agent": "QQ"}, "there is no agent 'QQ'; the agents are Q, SF"),
        ({"agent": "SFR", "environment": "racer"}, "CSFR"),
        ({"tasks": 0}, "--tasks is 0"),
        ({"size": 1}, "--size is 1; it must be at least 16"),
    ],
)
def test_bad_input(changes, message):
    with pytest.raises(InputError, match=message):
        main(Options(**changes))
