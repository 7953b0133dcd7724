"""The report of a user's own experiment: what is in it, bad input, and figures that answer."""

import json
import re
from html.parser import HTMLParser

import pytest

from sfr_fa import report
from sfr_fa.runs import load, publish
from tests.experiments import browser
from tests.experiments.synthetic import agent, key_of, rising, setting, write_run
from tests.refusals import refused

PLACE = setting("maze")
LEVELS = {"Q": 60.0, "SF": 480.0, "mine <b>": 690.0}
AGENTS = [agent("Q"), agent("SF"), agent("mine <b>", "SFR")]


@pytest.fixture
def folder(tmp_path):
    lost = {key_of(PLACE, AGENTS[1], 2)}
    returns = rising(lambda place, label: LEVELS[label], 12)
    return write_run(tmp_path / "runs", "own", [(PLACE, AGENTS)], returns, leave_out=lost)


def page_of(*arguments, folder):
    output = folder / "page.html"
    assert report.main(report.Options(tuple(map(str, arguments)), str(output))) == 0
    return output.read_text()


def test_a_folder_of_runs_gets_curves_tables_and_comparisons(folder, tmp_path, capsys):
    page = page_of(folder, folder=tmp_path)
    for text in (
        "Title of own, profile reduced",
        "maze: return over all tasks",
        "maze: each agent against mine &lt;b&gt;",
        "maze: p-values of all pairs",
        "SF has 2 of 3 repetitions; missing: 2",
        "Time of one repetition",
    ):
        assert text in page, text
    assert page.count('<figure class="plot">') == 2
    assert "<b>" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    printed = capsys.readouterr().out
    assert "missing: 2" in printed
    assert re.search(r"wrote .*page\.html, \d+ kB", printed)


def test_no_word_about_the_paper(folder, tmp_path):
    words = re.sub(r"<(script|style)>.*?</\1>", "", page_of(folder, folder=tmp_path), flags=re.DOTALL)
    for word in ("REPRODUCED", "REFUTED", "claim", "the paper"):
        assert word not in words


def test_a_published_table_gives_the_same_page_but_for_its_place(folder, tmp_path):
    publish.main(publish.Options((str(folder),), output=str(tmp_path / "published")))
    table = tmp_path / "published" / "own.csv"
    first, second = page_of(folder, folder=tmp_path), page_of(table, folder=tmp_path)
    assert first.replace(str(folder), "") == second.replace(str(table.with_suffix("")), "")


def test_it_needs_no_network_and_is_sound_html(folder, tmp_path):
    page = page_of(folder, folder=tmp_path)
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", page)
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    HTMLParser().feed(page)


def test_bad_input_gets_a_sentence(folder, tmp_path):
    with refused("nowhere", "no folder"):
        page_of(folder, tmp_path / "nowhere", folder=tmp_path)
    (tmp_path / "empty").mkdir()
    with refused("empty", "python -m sfr_fa.run"):
        page_of(tmp_path / "empty", folder=tmp_path)
    (tmp_path / "table.csv").write_text("nonsense")
    (tmp_path / "table.json").write_text("{}")
    with refused("no run", "table"):
        page_of(tmp_path / "table.csv", folder=tmp_path)
    assert not (tmp_path / "page.html").exists()


# --- In a browser

HOVER = """
const plot = Look.plots[0], panel = plot.data.panels[0], box = plot.box(0);
const x = box.x + box.width * (panel.at[7] - panel.xlim[0]) / (panel.xlim[1] - panel.xlim[0]);
const at = new DOMPoint(x, box.y + box.height / 2).matrixTransform(plot.svg.getScreenCTM());
plot.svg.dispatchEvent(new PointerEvent('pointermove', { clientX: at.x, clientY: at.y }));
const lines = [...plot.tip.children].map((line) => line.textContent);
const parts = (k) => [...plot.svg.querySelectorAll(`[id*="-s${k}-"]`)];
const visible = (k) => parts(k).filter((e) => e.style.display !== 'none').length;
const before = [visible(0), visible(1)];
plot.buttons[0].click();
const after = [visible(0), visible(1)], pressed = plot.buttons.map((b) => b.getAttribute('aria-pressed'));
plot.svg.dispatchEvent(new PointerEvent('pointermove', { clientX: at.x, clientY: at.y }));
const fewer = [...plot.tip.children].map((line) => line.textContent);
plot.buttons[0].click();
plot.svg.dispatchEvent(new PointerEvent('pointerleave'));
const hidden = plot.tip.hidden;
plot.svg.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }));
const rows = Look.plots[1];
rows.svg.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown' }));
return { lines, before, after, pressed, fewer, hidden, again: [visible(0), visible(1)],
  key: plot.tip.firstChild.textContent, row: [...rows.tip.children].map((line) => line.textContent),
  folded: [...document.querySelectorAll('details')].every((d) => !d.open) };
"""


@browser.needed
def test_figures_tell_numbers_and_agents_are_switched_off(folder, tmp_path):
    run = load.load(folder)
    found = browser.evaluate(report.page("Mine", [run], []), tmp_path, HOVER)
    assert found["lines"][0] == "task 8"
    assert [line.split(" ")[0] for line in found["lines"][1:]] == ["mine", "SF", "Q"]
    mean = run.agents["maze", "SF"].returns[:, 7].mean()
    assert re.search(r"SF ([\d.]+) ± [\d.]+ \(n = 2, [\d.]+ to [\d.]+\)", found["lines"][2])
    assert float(found["lines"][2].split(" ")[1]) == pytest.approx(mean, rel=1e-3)
    assert found["before"][0] > 0
    assert found["after"] == [0, found["before"][1]]
    assert found["again"] == found["before"]
    assert found["pressed"] == ["false", "true", "true"]
    assert [line.split(" ")[0] for line in found["fewer"][1:]] == ["SF", "Q"]
    assert found["hidden"]
    assert found["key"] == "task 9"
    assert found["row"][0] == "Q"
    assert found["row"][-1].startswith("repetitions: 0: ")
    assert found["folded"]


@browser.needed
def test_it_fits_a_phone_and_a_desktop(folder, tmp_path):
    browser.check_fits(report.page("Mine", [load.load(folder)], []), tmp_path)


@browser.needed
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_are_seen_without_scripts_in_light_and_dark(folder, tmp_path, scheme):
    page = report.page("Mine", [load.load(folder)], [])
    silent = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    flag = f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"
    seen = browser.screenshot(silent, tmp_path, 800, 900, flag)
    paper, line = {
        "light": ((255, 255, 255), (0xD5, 0x5E, 0)),
        "dark": ((0x14, 0x17, 0x1D), (0xF0, 0x81, 0x3A)),
    }[scheme]
    assert (seen == paper).all(axis=-1).mean() > 0.7
    assert (seen == line).all(axis=-1).sum() > 200


def test_numbers_for_the_script_are_json(folder):
    page = report.page("Mine", [load.load(folder)], [])
    for text in re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL):
        assert json.loads(text)["series"][0][0] in LEVELS
