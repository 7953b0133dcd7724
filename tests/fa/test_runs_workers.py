"""Workers that are jobs of a queue: what is submitted, what happens when jobs end or cannot be submitted.

The queue here is two shell scripts; tests/cluster/slurm.sh does the same on a real Slurm.
"""

import os
import signal
import stat
import time

import dask
import pytest

from sfr_fa.runs.store import SUFFIX
from sfr_fa.runs.workers import Workers, job_queue
from sfr_theory.errors import InputError
from tests.fa.tiny import contents, run_config, start, write_config

SBATCH = """#!/bin/sh
cp "$1" "{folder}/job-$$.sh"
setsid bash "{folder}/job-$$.sh" >"{folder}/job.log" 2>&1 &
echo $! >>"{folder}/jobs"
echo "Submitted batch job $!"
"""


def command_script(path, text):
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IEXEC)


@pytest.mark.parametrize(
    ("queue", "lines"),
    [
        (
            "slurm",
            ["#SBATCH -p long", "#SBATCH -n 1", "#SBATCH --cpus-per-task=1", "#SBATCH --mem=4G",
             "#SBATCH -t 12:00:00", "#SBATCH --exclusive"],
        ),
        ("pbs", ["#PBS -q long", "#PBS -l select=1:ncpus=1:mem=3815MB", "#PBS -l walltime=12:00:00",
                 "#PBS --exclusive"]),
        ("oar", ["#OAR -q long", "#OAR -l /nodes=1/core=1,walltime=12:00:00", "#OAR --exclusive"]),
    ],
)  # fmt: skip
def test_what_is_submitted(queue, lines):
    options = {"queue": "long", "walltime": "12:00:00", "job_extra_directives": ["--exclusive"]}
    with job_queue(Workers(2, queue=queue, options=options)) as jobs:
        script = jobs.cluster.job_script().splitlines()
    assert set(lines) <= set(script)
    (worker,) = (line for line in script if "dask_worker" in line)
    assert " --nthreads 1 " in worker


def test_the_users_configuration_of_dask_jobqueue_is_heard():
    with (
        dask.config.set({"jobqueue.slurm.memory": "9GB", "jobqueue.slurm.queue": "mine"}),
        job_queue(Workers(1, queue="slurm", options={"queue": "other"})) as jobs,
    ):
        script = jobs.cluster.job_script()
    assert "#SBATCH --mem=9G\n" in script
    assert "#SBATCH -p other\n" in script


def test_options_that_dask_jobqueue_does_not_know(tmp_path):
    with pytest.raises(InputError, match=r"dask-jobqueue does not accept these --cluster-options: .*colour"):
        run_config(
            write_config(tmp_path / "tiny.py"), tmp_path / "r", slurm=True, cluster_options=("colour=red",)
        )


@pytest.mark.parametrize("reason", ["no command", "refused"])
def test_jobs_that_cannot_be_submitted(tmp_path, monkeypatch, reason):
    commands = tmp_path / "bin"
    commands.mkdir()
    if reason == "refused":
        command_script(
            commands / "sbatch", "#!/bin/sh\necho 'sbatch: error: invalid partition' >&2\nexit 1\n"
        )
    monkeypatch.setenv("PATH", str(commands))
    words = {"no command": "there is no command sbatch", "refused": "sbatch: error: invalid partition"}
    with pytest.raises(InputError, match=f"jobs cannot be submitted to slurm here: {words[reason]}$"):
        run_config(write_config(tmp_path / "tiny.py"), tmp_path / "r", slurm=True)


@pytest.mark.slow
def test_a_job_that_is_cancelled_is_submitted_again(tmp_path, monkeypatch):
    config = write_config(tmp_path / "tiny.py", tasks=5, steps=150)
    assert run_config(config, tmp_path / "undisturbed") == 0
    command_script(tmp_path / "sbatch", SBATCH.format(folder=tmp_path))
    command_script(tmp_path / "scancel", '#!/bin/sh\nkill -s KILL -- "-$1"\n')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT", "1s")
    results = tmp_path / "r"
    here = 'scheduler_options={"host": "127.0.0.1", "dashboard_address": null}'
    process = start(config, "--results", results, "--slurm", "--cluster-options", here)
    try:
        deadline = time.monotonic() + 180
        while not list(results.rglob(f"*.task-*{SUFFIX}")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        (job,) = (tmp_path / "jobs").read_text().split()
        os.killpg(int(job), signal.SIGKILL)
        output, _ = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, output
    assert len((tmp_path / "jobs").read_text().split()) == 2
    assert contents(results) == contents(tmp_path / "undisturbed")
