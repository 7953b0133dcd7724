"""In how many worlds does a statement of the paper hold, and which unprinted choice decides it?

A world is one value of each choice that the paper does not print (experiments.configs.multiverse). In a world
a statement is about one number, a quotient of total returns such as SF / SFR, or of two such quotients, and
says between which limits it lies:

    estimate    of the mean returns over all repetitions
    range       of the quotients of single repetitions, which share tasks and noise
    holds       the estimate lies within the limits
    fails       it lies outside by more than three standard errors; these rest on the scatter of repetitions
                in all worlds together, since a single world has few

For a choice, the part of the variance of log estimates that lies between its values, less what chance would
put there (omega squared), says how much it decides. Where a fit or a rule makes no difference, as SF's fit on
linear rewards, there is one world for all its values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sfr_fa.runs.load import AgentRun, Run

SIMILAR = 0.9
"""Two returns are alike if the smaller is at least this part of the larger; the paper has no number."""
EXPERIMENTS = ("multiverse", "multiverse_racer")
CLEARLY = 3
"""Standard errors."""
DECIDES = 0.1
"""Of the variance."""
BELOW, ALIKE, HALF = (0.0, 1.0), (SIMILAR, 1 / SIMILAR), (0.0, 0.5)
VARIANTS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "SF": ("SF's fit", {"L1": "SF", "least squares": "SF, least squares"}),
    "MB SFR": ("MB's rule", {"delta rule": "MB SFR", "squares": "MB SFR, squares"}),
}
"""Agents that stand for a choice: its name, and a label for each of its values."""


def together(value: str) -> str:
    """A value of a choice as it is shown: placements that were drawn are one."""
    return "drawn at random" if value.startswith("drawn ") else value


@dataclass(frozen=True)
class Statement:
    """A quotient of returns, each given by its place and agent, and the limits that are claimed."""

    claim: str
    words: str
    over: tuple[tuple[str, str], ...]
    under: tuple[tuple[str, str], ...]
    limits: tuple[float, float]

    @property
    def name(self) -> str:
        """The quotient as it is written: "linear: SF / SFR"."""
        if len(self.over) > 1:
            (first, a), (second, _) = self.over[0], self.under[1]
            return f"{a} / {self.under[0][1]}: {first} / {second}"
        (place, above), (_, below) = self.over[0], self.under[0]
        return f"{place}: {above} / {below}"


def _ratio(
    claim: str, words: str, place: str, over: str, under: str, limits: tuple[float, float]
) -> Statement:
    return Statement(f"results/{claim}", words, ((place, over),), ((place, under),), limits)


def _ratio_of_ratios(claim: str, words: str, first: str, second: str) -> Statement:
    over, under = ((first, "SF"), (second, "SFR")), ((first, "SFR"), (second, "SF"))
    return Statement(f"results/{claim}", words, over, under, BELOW)


STATEMENTS = (
    _ratio("object-linear-sfr-above-sf", "SFR is ahead of SF", "linear", "SF", "SFR", BELOW),
    _ratio("object-linear-sfr-above-sf", "SFR is ahead of Q", "linear", "Q", "SFR", BELOW),
    _ratio("object-general-sfr-above-sf", "SFR is ahead of SF", "general", "SF", "SFR", BELOW),
    _ratio("object-general-sfr-above-sf", "SFR is ahead of Q", "general", "Q", "SFR", BELOW),
    _ratio("nonlinearity-near-linear", "SF and SFR are alike", "level_0", "SF", "SFR", ALIKE),
    _ratio("nonlinearity-half", "SF has less than half of SFR", "level_6", "SF", "SFR", HALF),
    _ratio_of_ratios("nonlinearity-trend", "SF / SFR falls", "level_6", "level_0"),
    _ratio_of_ratios("object-stronger-for-general", "SFR's advantage is larger", "general", "linear"),
    _ratio("object-linear-model-based", "MB SFR and SFR are alike", "linear", "MB SFR", "SFR", ALIKE),
    _ratio("barreto-sfr-best", "SFR is ahead of SF", "barreto", "SF", "SFR", BELOW),
    _ratio("barreto-model-based", "MB SFR and SF are alike", "barreto", "MB SFR", "SF", ALIKE),
    _ratio("racer-csfr-above-q", "CSFR is ahead of Q", "racer", "Q", "CSFR", BELOW),
    _ratio("racer-csfr-above-q", "CSFR is ahead of SF", "racer", "SF", "CSFR", BELOW),
)


@dataclass(frozen=True)
class Universe:
    """One choice of everything, and what a statement's quotient is there."""

    choices: Mapping[str, str]
    estimate: float
    quotients: tuple[float, ...]
    """One for each repetition."""
    limits: tuple[float, float]

    @property
    def holds(self) -> bool:
        low, high = self.limits
        return low <= self.estimate <= high


@dataclass(frozen=True)
class Specification:
    """A statement in all worlds, from the smallest estimate to the largest."""

    statement: Statement
    worlds: tuple[Universe, ...]
    run: Run

    @property
    def holding(self) -> int:
        return sum(world.holds for world in self.worlds)

    @cached_property
    def standard_error(self) -> float:
        """Of the logarithm of an estimate; infinite if no world has two repetitions."""
        logs = [np.log(w.quotients) for w in self.worlds if min(w.quotients) > 0]
        freedom = sum(len(values) - 1 for values in logs)
        scatter = sum(float(((values - values.mean()) ** 2).sum()) for values in logs)
        fewest = min(len(world.quotients) for world in self.worlds)
        return math.sqrt(scatter / freedom / fewest) if freedom else math.inf

    @property
    def failing(self) -> int:
        """In how many worlds it clearly fails."""
        margin = math.exp(CLEARLY * self.standard_error) if math.isfinite(self.standard_error) else math.inf
        return sum(
            world.estimate > world.limits[1] * margin or world.estimate * margin < world.limits[0]
            for world in self.worlds
        )

    @property
    def repetitions(self) -> int:
        return self.run.repetitions

    @property
    def layouts(self) -> int:
        """How many environments there are, whatever an agent's fit or rule."""
        of_agents = [choice for choice, _ in VARIANTS.values()]
        return len(
            {frozenset((c, v) for c, v in w.choices.items() if c not in of_agents) for w in self.worlds}
        )

    @cached_property
    def decided_by(self) -> dict[str, float]:
        """Choice -> the part of the variance between its values, the largest first."""
        names = dict.fromkeys(name for world in self.worlds for name in world.choices)
        parts = {name: _between([(w.choices[name], w.estimate) for w in self.worlds]) for name in names}
        return dict(sorted(parts.items(), key=lambda part: -part[1]))

    @property
    def decider(self) -> str:
        """The choice that decides most; empty if none decides a tenth."""
        choice, part = next(iter(self.decided_by.items()))
        return choice if part >= DECIDES else ""

    def where(self, choice: str, value: str) -> Specification:
        """In the worlds with one value of a choice."""
        worlds = tuple(world for world in self.worlds if world.choices.get(choice) == value)
        return replace(self, worlds=worlds)

    def counts(self, choice: str) -> dict[str, tuple[int, int]]:
        """Value of a choice -> in how many of its worlds the statement holds, and how many there are."""
        found: dict[str, tuple[int, int]] = {}
        for world in self.worlds:
            value = together(world.choices[choice])
            holding, number = found.get(value, (0, 0))
            found[value] = holding + world.holds, number + 1
        return found


def _between(points: list[tuple[str, float]]) -> float:
    """omega squared of the logarithms; 0 where nothing varies or a quotient is not positive."""
    if any(value <= 0 for _, value in points):
        return 0.0
    logs = np.log([value for _, value in points])
    groups: dict[str, list[float]] = {}
    for (name, _), value in zip(points, logs.tolist(), strict=True):
        groups.setdefault(name, []).append(value)
    total = float(((logs - logs.mean()) ** 2).sum())
    within = sum(float(((np.array(group) - np.mean(group)) ** 2).sum()) for group in groups.values())
    freedom = len(logs) - len(groups)
    noise = within / freedom if freedom else math.inf
    explained = total - within - (len(groups) - 1) * noise
    return max(0.0, explained / (total + noise)) if total > 0 and freedom else 0.0


# --- From a run to worlds ----------------------------------------------------------------------------

Site = Mapping[str, AgentRun]
"""Label -> agent, in one setting of one world."""


def _sites(run: Run) -> dict[tuple[tuple[str, str], ...], dict[str, Site]]:
    """Choices of the environment -> place -> the agents there."""
    found: dict[tuple[tuple[str, str], ...], dict[str, Site]] = {}
    for part in run.config["parts"]:
        choices, place = _environment(part["setting"])
        agents = {agent.label: agent for agent in run.in_setting(part["setting"]["name"])}
        found.setdefault(tuple(choices.items()), {})[place] = agents
    return found


def _environment(setting: Mapping[str, Any]) -> tuple[dict[str, str], str]:
    """The choices that a setting of one of the two configs stands for, and which place it varies."""
    from experiments.configs import multiverse, multiverse_racer  # which need torch; comparisons do not

    if setting["environment"] == "racer":
        limits = {ends: name for name, ends in multiverse_racer.LIMITS.items()}
        return {"time limit": limits[setting["limit_is_terminal"]]}, "racer"
    base = next(
        part.setting
        for part in multiverse.PARTS
        if (part.setting.environment, part.setting.tasks) == (setting["environment"], setting["tasks"])
    )
    options = setting["environment_options"]
    named = {kinds: name for name, kinds in multiverse.placements(multiverse.layout(base)).items()}
    return {"sigma": f"{options['sigma']:g}", "placement": named[tuple(options["kinds"])]}, base.name


def specification(run: Run, statement: Statement) -> Specification | None:
    """A statement in the worlds of a run that have all its agents; nothing if there is none."""
    worlds = [
        world
        for environment, sites in _sites(run).items()
        for world in _worlds(statement, dict(environment), sites)
    ]
    worlds.sort(key=lambda world: world.estimate)
    return Specification(statement, tuple(worlds), run) if worlds else None


def _worlds(
    statement: Statement, environment: Mapping[str, str], sites: Mapping[str, Site]
) -> Iterable[Universe]:
    terms = [(place, agent, 1) for place, agent in statement.over]
    terms += [(place, agent, -1) for place, agent in statement.under]
    if any(agent not in sites.get(place, {}) for place, agent, _ in terms):
        return
    # A variant is a choice where it was run; elsewhere it makes no difference.
    variants = {
        agent: VARIANTS[agent]
        for place, agent, _ in terms
        if agent in VARIANTS and set(VARIANTS[agent][1].values()) <= set(sites[place])
    }
    for values in itertools.product(*(labels.items() for _, labels in variants.values())):
        labels = {agent: label for agent, (_, label) in zip(variants, values, strict=True)}
        agents = [
            (sites[place].get(labels.get(agent, agent), sites[place][agent]), power)
            for place, agent, power in terms
        ]
        common = sorted(set.intersection(*(set(agent.trials) for agent, _ in agents)))
        if common:
            totals = np.array([agent.totals_of(common) for agent, _ in agents])
            powers = np.array([float(power) for _, power in agents])
            estimate = float(np.prod(totals.mean(axis=1) ** powers))
            quotients = np.prod(totals ** powers[:, None], axis=0)
            chosen = {
                choice: value for (choice, _), (value, _) in zip(variants.values(), values, strict=True)
            }
            yield Universe({**environment, **chosen}, estimate, tuple(quotients.tolist()), statement.limits)


def specifications(runs: Iterable[Run]) -> list[Specification]:
    """Every statement that the runs of the two configs suffice for."""
    there = [run for run in runs if run.name in EXPERIMENTS]
    found = (specification(run, statement) for statement in STATEMENTS for run in there)
    return [specification for specification in found if specification is not None]
