"""The moving picture of the live page: what is committed, and what is said if it cannot be made."""

from PIL import Image

from experiments.live import film
from experiments.live.export import ROOM_PRESETS
from tests.commands import ROOT
from tests.experiments import browser
from tests.refusals import refused

COMMITTED = ROOT / "docs" / "images" / "live.webp"


def test_what_is_committed_moves_and_is_small():
    assert COMMITTED.stat().st_size < 400_000
    with Image.open(COMMITTED) as picture:
        assert picture.n_frames == len(film.REWARDS) * film.Options("live.html").frames
        assert picture.width == film.Options("live.html").width


def test_rewards_are_those_of_the_page():
    assert set(film.REWARDS) <= set(ROOM_PRESETS)


@browser.needed
def test_a_page_that_is_not_there_gets_a_sentence(tmp_path):
    with refused("nowhere.html;", "experiments.live"):
        film.main(film.Options(str(tmp_path / "nowhere.html"), str(tmp_path / "film.webp")))


def test_without_a_browser_it_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with refused("chromium"):
        film.main(film.Options("live.html", str(tmp_path / "film.webp")))
