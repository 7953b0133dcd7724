"""Small result folders, written as a run writes them, with returns of our choice."""

import json
from unittest import mock

import numpy as np

from sfr_fa.runs.load import load
from sfr_fa.runs.store import TIMES, RunFolder, TaskRow, TrialResult, digest
from sfr_fa.runs.wording import rate_text

PROVENANCE = {
    "engine": "compiled",
    "python": "3.11.0",
    "packages": {"numpy": "2.0"},
    "commit": "0123456789abcdef",
    "platform": "here",
    "machine": "x86_64",
}
SIZES = {"smoke": (3, 200, 2), "reduced": (12, 20_000, 3), "paper": (300, 20_000, 10)}


def agent(label, kind=None, **rates):
    setup = {"label": label, "agent": kind or label, "learning_rate": 0.005, "reward_learning_rate": None}
    return {**setup, **rates}


def setting(name, environment="object_collection", tasks="general"):
    return {"name": name, "environment": environment, "tasks": tasks, "gamma": 0.95}


def rates_of(setup):
    names = ("learning_rate", "reward_learning_rate")
    return {name: setup[name] for name in names if setup[name] is not None}


def key_of(place, setup, repetition):
    rates = "_".join(map(rate_text, rates_of(setup).values()))
    return f"{place['name']}/{setup['label'].replace(' ', '_')}/{rates}/rep-{repetition:02d}"


def write_run(results, name, parts, returns, profile="reduced", size=None, leave_out=(), seed=0):
    """A run in results/name/profile.

    `parts` are (setting, agents); `returns(setting name, agent setup, repetition, rng)` gives the return of
    each task; keys in `leave_out` are not written. Returns the folder.
    """
    tasks, steps, repetitions = size or SIZES[profile]
    folder = RunFolder(results / name / profile)
    config = {
        "name": name,
        "title": f"Title of {name}",
        "profile": profile,
        "size": {"tasks": tasks, "steps": steps, "repetitions": repetitions},
        "seed": seed,
        "engine": "compiled",
        "parts": [{"setting": place, "agents": list(agents)} for place, agents in parts],
    }
    trials = [
        (place, setup, repetition)
        for repetition in range(repetitions)
        for place, agents in parts
        for setup in agents
    ]
    folder.start(config, [key_of(*trial) for trial in trials], PROVENANCE)
    for number, (place, setup, repetition) in enumerate(trials):
        key = key_of(place, setup, repetition)
        if key in leave_out:
            continue
        values = returns(place["name"], setup, repetition, np.random.default_rng((seed, number)))
        rows = [
            TaskRow(task, float(value), steps, 1, steps, 1, -1, 0, False)
            for task, value in zip(range(tasks), values, strict=True)
        ]
        trial = {
            "setting": place,
            "agent": setup,
            "repetition": repetition,
            "seed": seed,
            "tasks": tasks,
            "steps": steps,
            "engine": "compiled",
            "rates": rates_of(setup),
        }
        same_tasks = f"tasks of {place['name']} in repetition {repetition}"
        with mock.patch("os.fsync"):  # these files need not survive a power failure
            folder.write_result(TrialResult(key, trial, rows, [0.5] * tasks, same_tasks, PROVENANCE, ()))
    return folder.path


def sign_again(path, change):
    """Change a JSON file and sign it again, as a careful forger (or a careless script) would."""
    content = json.loads(path.read_text())
    del content["sha256"]
    change(content)
    signed = {name: value for name, value in content.items() if name not in TIMES}
    path.write_text(json.dumps(content | {"sha256": digest(signed)}))


def write_again(folder, key, rows, **changes):
    """Another result of a trial, as a run would have written it, under the name that the manifest knows."""
    here = RunFolder(folder)
    content = json.loads(here.json_path(key).read_text())
    here.json_path(key).unlink()
    here.csv_path(key).unlink()
    trial, tasks = content["trial"] | changes, content["tasks_sha256"]
    here.write_result(TrialResult(key, trial, rows, [0.5] * len(rows), tasks, PROVENANCE, ()))


OBJECT_LEVELS = {
    "Q": 60.0, "SF": 480.0, "SF-R": 350.0, "SF-4": 380.0, "SF-8": 250.0, "SFR": 690.0, "SFR-R": 370.0,
    "CSFR-4": 382.0, "MB SFR": 640.0, "MB SFR-R": 365.0,
}  # fmt: skip


def flat(level, tasks=12):
    """`returns` for write_run: level(setting name, agent setup, repetition) in every task."""
    return lambda place, setup, repetition, rng: np.full(tasks, float(level(place, setup, repetition)))


def rising(level_of, tasks, noise=0.04):
    """`returns` for write_run: agents rise to level_of(setting name, label), as in the paper's figures."""

    def returns(place, setup, repetition, rng):
        level = level_of(place, setup["label"])
        curve = level * (1 - np.exp(-(1 + np.arange(tasks)) / (tasks / 6)))
        return curve + abs(level) * (rng.normal(0, 0.12, tasks) + rng.normal(0, noise))

    return returns


GENERAL = setting("general")
KINDS = {
    "Q": "Q", "SF": "SF", "SF-R": "SF-R", "SF-4": "SF-h", "SF-8": "SF-h", "SFR": "SFR", "SFR-R": "SFR-R",
    "CSFR-4": "CSFR-h", "MB SFR": "MB SFR", "MB SFR-R": "MB SFR-R",
}  # fmt: skip
AGENTS = [agent(label, kind) for label, kind in KINDS.items()]


def apart(place, setup, repetition, rng):
    """Repetitions 0, 1, 2 differ by 0, 1, 2; task t adds t; each agent has its own level."""
    return 10.0 * list(KINDS).index(setup["label"]) + repetition + np.arange(12)


def all_agents(folder):
    """A run of all agents on general tasks; SF lacks its last repetition."""
    lost = {key_of(GENERAL, AGENTS[1], 2)}
    return load(write_run(folder, "mine", [(GENERAL, AGENTS)], apart, leave_out=lost))
