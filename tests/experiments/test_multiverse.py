"""A statement in all worlds: which there are, where it holds, where it clearly fails, and what decides it."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.analysis import claims, multiverse, world_figures
from experiments.configs import load_config
from experiments.configs.multiverse import placements
from sfr_fa.analysis.render import render
from sfr_fa.environments.layouts import BARRETO_LAYOUT, OBJECT_COLLECTION_LAYOUT
from sfr_fa.report import in_page
from sfr_fa.runs.load import AgentRun, Run
from sfr_theory.claims import CheckResult, Verdict
from tests.experiments import browser

BASE = {"Q": 10.0, "SF": 80.0, "SF, least squares": 90.0, "SFR": 100.0, "CSFR": 150.0, "MB SFR": 98.0,
        "MB SFR, squares": 40.0}  # fmt: skip


def record(total_return):
    return SimpleNamespace(total_return=total_return, seconds=1.0, provenance={})


def run_of(name, level=lambda setting, label: BASE[label], repetitions=3, noise=0.01):
    """A run of a config in memory; repetition k of all agents of a setting shares its noise."""
    config = load_config(name).to_json("reduced")
    config["size"]["repetitions"] = repetitions
    rng = np.random.default_rng(0)
    agents = {}
    for part in config["parts"]:
        setting = part["setting"]
        shared = 1 + 0.2 * rng.random(repetitions)
        for setup in part["agents"]:
            totals = level(setting, setup["label"]) * shared * (1 + noise * rng.normal(size=repetitions))
            trials = {k: record(float(t)) for k, t in enumerate(totals)}
            place = (setting["name"], setup["label"])
            agents[place] = AgentRun(*place, setup["agent"], {}, trials)
    return Run(Path(name), config, {}, agents, (), (), ())


def found(run, name):
    return next(s for s in multiverse.specifications([run]) if s.statement.name == name)


def test_the_worlds_are_all_choices():
    run = run_of("multiverse")
    assert len(found(run, "linear: SF / SFR").worlds) == 2 * 10
    assert len(found(run, "level_6: SF / SFR").worlds) == 2 * 10 * 2
    assert len(found(run, "linear: MB SFR / SFR").worlds) == 2 * 10 * 2
    assert len(found(run, "SF / SFR: general / linear").worlds) == 2 * 10 * 2
    assert len(found(run_of("multiverse_racer"), "racer: Q / CSFR").worlds) == 2
    choices = [tuple(world.choices.items()) for world in found(run, "barreto: MB SFR / SF").worlds]
    assert len(set(choices)) == len(choices) == 40
    assert {name for name, _ in choices[0]} == {"sigma", "placement", "MB's rule"}


@pytest.mark.parametrize("layout", [OBJECT_COLLECTION_LAYOUT, BARRETO_LAYOUT])
def test_placements_have_as_many_of_each_kind_and_differ(layout):
    kinds = placements(layout)
    assert len(kinds) == len(set(kinds.values())) == 10
    assert {tuple(sorted(k)) for k in kinds.values()} == {tuple(sorted(layout.kind_of_object))}


def test_estimates_are_quotients_of_means_by_hand():
    run = run_of("multiverse", noise=0)
    assert [w.estimate for w in found(run, "linear: SF / SFR").worlds] == pytest.approx([0.8] * 20)
    ratios = found(run, "SF / SFR: level_6 / level_0")
    assert [w.estimate for w in ratios.worlds] == pytest.approx([1.0] * 40)
    general = found(run, "SF / SFR: general / linear")  # SF's fit is a choice for general rewards alone
    assert sorted({round(w.estimate, 9) for w in general.worlds}) == [1.0, 1.125]
    assert {w.choices["SF's fit"] for w in general.worlds if w.estimate > 1.1} == {"least squares"}


def test_the_choice_that_decides():
    rule = found(run_of("multiverse"), "linear: MB SFR / SFR")
    assert next(iter(rule.decided_by)) == "MB's rule"
    assert rule.decided_by["MB's rule"] > 0.95
    assert rule.counts("MB's rule") == {"squares": (0, 20), "delta rule": (20, 20)}
    assert (rule.holding, rule.failing) == (20, 20)

    def by_placement(setting, label):
        first = setting["environment_options"]["kinds"][0]
        return BASE[label] * (1 + 0.1 * first * (label == "SF"))

    placement = found(run_of("multiverse", by_placement), "linear: SF / SFR")
    assert next(iter(placement.decided_by)) == "placement"
    chance = found(run_of("multiverse", noise=0.1), "linear: SF / SFR")
    assert max(chance.decided_by.values()) < 0.5


def test_only_more_than_chance_is_a_clear_failure():
    """SF and SFR alike: about half of the worlds have SF ahead, none of them clearly."""
    alike = run_of("multiverse", lambda setting, label: 100.0, noise=0.1)
    chance = found(alike, "linear: SF / SFR")
    assert 4 <= chance.holding <= 16
    assert chance.failing == 0
    ahead = run_of("multiverse", lambda setting, label: 150.0 if label == "SF" else 100.0, noise=0.02)
    assert found(ahead, "linear: SF / SFR").failing == 20
    once = run_of("multiverse", lambda setting, label: 150.0 if label == "SF" else 100.0, repetitions=1)
    assert found(once, "linear: SF / SFR").failing == 0, "a single repetition says nothing of its scatter"


def test_verdicts_name_what_they_depend_on():
    reproduced = CheckResult(Verdict.REPRODUCED, "at full scale", "the paper's size")
    run = run_of("multiverse")
    everywhere = claims.in_all_worlds(reproduced, [found(run, "linear: SF / SFR")])
    assert everywhere.verdict is Verdict.REPRODUCED
    assert "20 of 20" in everywhere.evidence
    depends = claims.in_all_worlds(reproduced, [found(run, "linear: MB SFR / SFR")])
    assert depends.verdict is Verdict.NEEDS_ASSUMPTION
    assert "20 of 40" in depends.evidence
    assert "MB's rule" in depends.evidence
    assert "multiverse" in depends.scope
    unchecked = CheckResult(Verdict.NOT_CHECKED, "nothing")
    assert claims.in_all_worlds(unchecked, [found(run, "linear: SF / SFR")]) is unchecked


def test_the_figure_has_a_panel_for_each_statement():
    run = run_of("multiverse")
    picture = world_figures.specification_curves(run)
    assert len(picture.figure.subfigs) >= len(multiverse.specifications([run])) == 11
    assert "40 worlds" in picture.caption


def test_the_figure_of_fewer_policies():
    level = {"bound": 1.0, "nearest": 0.9, "recent": 0.8, "random": 0.7}

    def returns(setting, label):
        rule = label.removeprefix("SFR, ").split()[0]
        return 100 * level.get(rule, 1.0)

    run = run_of("subset_gpi", returns, noise=0)
    picture = world_figures.fewer_policies(run)
    axes = picture.figure.axes[0]
    heights = {container.get_label(): container.lines[0].get_ydata()[0] for container in axes.containers}
    assert heights == pytest.approx({rule: 100 * part for rule, part in level.items()})
    assert list(world_figures.subsets(run, "linear", "bound")) == [1, 5, 20]
    told = picture.numbers["panels"][0]
    assert told["names"][1].startswith("linear, m = 5:")
    n = len(run.agents["linear", "SFR, all"].trials)
    assert told["series"][0]["n"] == n
    assert f"over {n} repetitions" in picture.caption
    assert [told["series"][k]["mean"][0] for k in range(4)] == pytest.approx([100, 90, 80, 70])


HOVER = """
return Look.plots.map((plot) => {
  const told = [0, plot.data.panels.length - 1].map((k) => {
    const panel = plot.data.panels[k], box = plot.box(k);
    const x = box.x + box.width * (panel.at[1] - panel.xlim[0]) / (panel.xlim[1] - panel.xlim[0]);
    const at = new DOMPoint(x, box.y + box.height / 2).matrixTransform(plot.svg.getScreenCTM());
    plot.svg.dispatchEvent(new PointerEvent('pointermove', { clientX: at.x, clientY: at.y }));
    return [...plot.tip.children].map((line) => line.textContent);
  });
  plot.buttons[0].click();
  const left = plot.data.series.map((_, k) => [...plot.svg.querySelectorAll(`[id*="-s${k}-"]`)]
    .filter((e) => e.style.display !== 'none').length);
  return { told, left };
});
"""


@browser.needed
def test_figures_of_worlds_answer(tmp_path):
    runs = {"multiverse": run_of("multiverse"), "subset_gpi": run_of("subset_gpi", lambda *_: 100.0)}
    shown = in_page(lambda run: iter([world_figures.PICTURES[run.name](run)]))
    figures = render.environments["html"].from_string(
        "{% extends 'page.html' %}{% import 'macros.html' as m %}"
        "{% block body %}{% for run in runs %}{% for d in shown(run) %}{{ m.plot(d) }}"
        "{% endfor %}{% endfor %}{% endblock %}"
    )
    worlds, fewer = browser.evaluate(
        figures.render(runs=runs.values(), shown=shown), tmp_path, HOVER, "--window-size=1200,2000"
    )
    world = found(runs["multiverse"], "linear: SF / SFR").worlds[1]
    (choices, quotient), last = worlds["told"]
    assert choices == ", ".join(f"{choice} {value}" for choice, value in world.choices.items())
    assert quotient.startswith(f"as claimed {world.estimate:.4g} (n = 3, {min(world.quotients):.4g} to")
    assert len(last) == 2
    assert worlds["left"][0] == 0
    assert worlds["left"][1] > 0
    returns, times = fewer["told"]
    assert returns[0].startswith("linear, m = 5: %")
    assert {line.split()[0] for line in returns[1:]} == {*world_figures.STYLES}
    assert "µs" in times[0]
    assert fewer["left"][0] == 0
    assert min(fewer["left"][1:]) > 0
