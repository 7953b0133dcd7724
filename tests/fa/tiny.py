"""A config that takes a second, and what tests ask of a folder of results."""

import os
import subprocess
import sys
import time
from pathlib import Path

from experiments.kill_test import contents
from sfr_fa import run
from sfr_fa.runs.store import SUFFIX
from tests.commands import ROOT

__all__ = [
    "AGENTS", "RACER", "SETTING", "checkpoints", "command", "contents", "outcome", "run_config", "start",
    "wait_for", "write_config",
]  # fmt: skip

TINY = """
from sfr_fa.runs.config import ExperimentConfig, Part, Profile
from sfr_fa.runs.config import AgentSetup, Setting

CONFIG = ExperimentConfig(
    name="tiny",
    title="A tiny experiment",
    parts=(Part({setting}, ({agents})),),
    profiles={{"smoke": Profile({tasks}, {steps}, {repetitions}, feature_tasks=2, feature_iterations=100)}},
    engine="{engine}",
    seed={seed},
)
"""
SETTING = 'Setting("general", "object_collection", "general", gamma=0.95)'
RACER = 'Setting("racer", "racer", "racer", gamma=0.9, approximator="networks")'
AGENTS = 'AgentSetup("Q", "Q"), AgentSetup("SF", "SF"), AgentSetup("SFR", "SFR"),'


def write_config(
    path, agents=AGENTS, tasks=4, steps=25, repetitions=1, engine="reference", seed=3, setting=SETTING
):
    content = {
        "agents": agents, "tasks": tasks, "steps": steps, "repetitions": repetitions, "engine": engine,
        "seed": seed, "setting": setting,
    }  # fmt: skip
    path.write_text(TINY.format(**content))
    return str(path)


def run_config(config, results, **options):
    """sfr_fa.run in this process: its exit code."""
    return run.main(run.Options(config, results=str(results), **options))


def outcome(config, results, **options):
    """What is in the folder of results after a run that succeeds."""
    assert run_config(config, results, **options) == 0
    return contents(results)


def command(*arguments, module="sfr_fa.run"):
    return [sys.executable, "-m", module, *map(str, arguments)]


def start(*arguments, module="sfr_fa.run", **options):
    """sfr_fa.run, or another command, as a process group of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command(*arguments, module=module), cwd=ROOT, env=environment, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options,
    )  # fmt: skip


def wait_for(condition, seconds=180.0):  # long enough for a machine that does ten other things
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it has not happened"
        time.sleep(0.02)


def checkpoints(results):
    return list(Path(results).rglob(f"*.task-*{SUFFIX}"))
