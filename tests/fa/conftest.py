"""Runs that nothing disturbs, and commands that run as processes of their own."""

import os
import signal

import pytest

from tests.fa.tiny import outcome, start


@pytest.fixture
def undisturbed(config, tmp_path):
    """What a run of the test's config leaves."""
    return outcome(config, tmp_path / "undisturbed")


@pytest.fixture
def launch():
    """sfr_fa.run as a process of its own, which does not outlive the test."""
    processes = []

    def launched(*arguments, **options):
        processes.append(start(*arguments, **options))
        return processes[-1]

    yield launched
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
