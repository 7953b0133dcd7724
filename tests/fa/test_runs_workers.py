"""Workers: what happens when they die, who may connect to them, and those that are jobs of a queue.

The queue here is two shell scripts; tests/cluster/slurm.sh does the same on a real Slurm.
"""

import asyncio
import contextlib
import http.client
import os
import shlex
import signal
import socket
import ssl
import stat
import threading
import time
from pathlib import Path

import dask
import distributed
import psutil
import pytest

from sfr_fa.runs.workers import ATTEMPTS, Workers, job_queue, local_workers
from sfr_theory.errors import InputError
from tests.fa.tiny import checkpoints, contents, outcome, run_config, wait_for, write_config
from tests.refusals import refused

SBATCH = """#!/bin/sh
cp "$1" "{folder}/job-$$.sh"
setsid bash "{folder}/job-$$.sh" >"{folder}/job.log" 2>&1 &
echo $! >>"{folder}/jobs"
echo "Submitted batch job $!"
"""


# --- Workers that die


def local_processes():
    """The workers that this process has started and that are alive."""
    alive = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):  # it died, or was waited for, while we looked
            if child.status() != psutil.STATUS_ZOMBIE and "spawn_main" in "".join(child.cmdline()):
                alive.append(child)
    return alive


class Killer(threading.Thread):
    """Kills all workers of this process together, once per condition, each time when it is true.

    A condition is asked of the workers that are new: one that was killed takes a moment to die.
    """

    def __init__(self, *conditions):
        super().__init__(daemon=True)
        self.conditions, self.killed, self.over = conditions, [], False

    def run(self):
        for condition in self.conditions:
            while not condition(victims := self.new_workers()):
                if self.over:
                    return
                time.sleep(0.02)
            for victim in victims:
                victim.kill()
                self.killed.append(victim.pid)

    def new_workers(self):
        return [worker for worker in local_processes() if worker.pid not in self.killed]

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exception):
        self.over = True
        self.join()


def both_run(workers):
    return len(workers) == 2


@pytest.mark.slow
@pytest.mark.parametrize("when", ["start", "middle"])
def test_all_workers_are_killed_twice_in_a_row(tmp_path, capfd, when):
    config = write_config(tmp_path / "tiny.py", tasks=3, steps=600)
    assert run_config(config, tmp_path / "undisturbed") == 0
    results = tmp_path / "r"

    def under_way(workers):
        return both_run(workers) and checkpoints(results)

    first = both_run if when == "start" else under_way
    capfd.readouterr()
    with Killer(first, both_run) as killer:
        assert run_config(config, results, workers=2) == 0
    assert len(killer.killed) == 4
    assert contents(results) == contents(tmp_path / "undisturbed")
    output = capfd.readouterr()
    assert output.out.count("a worker was lost (signal SIGKILL)") == 4, "each loss is reported"
    assert "Traceback" not in output.out + output.err
    assert not local_processes()


def test_workers_that_can_never_begin(tmp_path, capfd):
    config = write_config(tmp_path / "tiny.py")
    assert run_config(config, tmp_path / "undisturbed") == 0
    results = tmp_path / "r"
    assert run_config(config, results, agents=("Q",)) == 0
    finished = contents(results)
    capfd.readouterr()
    with Killer(*[bool] * 100) as killer:
        assert run_config(config, results, workers=2) == 1
    assert len(killer.killed) >= 2 * ATTEMPTS
    output = capfd.readouterr()
    assert "1 of 3 trials are finished" in output.out
    failed = [line for line in output.out.splitlines() if line.startswith("failed: ")]
    assert len(failed) == 2
    assert all("died before they could begin (signal SIGKILL)" in line for line in failed)
    assert "Traceback" not in output.out + output.err
    assert contents(results).items() >= finished.items(), "what is finished stays finished"
    assert outcome(config, results) == contents(tmp_path / "undisturbed")


# --- Who may connect


def identity(address, security):
    """What a scheduler or worker says of itself, with these credentials."""

    async def ask():
        arguments = security.get_connection_args("client")
        communication = await distributed.core.connect(address, timeout=2, **arguments)
        await communication.write({"op": "identity", "reply": True})
        answer = await communication.read()
        await communication.close()
        return answer

    return asyncio.run(asyncio.wait_for(ask(), 10))


def test_who_has_no_credentials_of_the_run_is_refused():
    with local_workers(1, print) as workers, distributed.Client(workers.cluster) as client:
        client.wait_for_workers(1, timeout=60)
        (worker,) = client.nthreads()
        scheduler = workers.cluster.scheduler_address
        for address, kind in ((scheduler, "Scheduler"), (worker, "Worker")):
            assert identity(address, workers.cluster.security)["type"] == kind, "who has them is let in"
            with pytest.raises(OSError):  # noqa: PT011 - refused within TLS, in words of the library
                identity(address, distributed.Security.temporary())
            with pytest.raises(OSError):  # noqa: PT011
                identity(address.replace("tls://", "tcp://"), distributed.Security())
            nobody = ssl.create_default_context()
            nobody.check_hostname, nobody.verify_mode = False, ssl.CERT_NONE
            host, port = address.removeprefix("tls://").split(":")
            with (
                pytest.raises(ssl.SSLError),
                socket.create_connection((host, int(port)), timeout=5) as plain,
                nobody.wrap_socket(plain) as encrypted,
            ):
                encrypted.recv(1)  # TLS 1.3 refuses a client without a certificate here
        ports = [
            connection.laddr
            for process in (psutil.Process(), *local_processes())
            for connection in process.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        ]
        assert {port.ip for port in ports} == {"127.0.0.1"}, "nothing listens to other machines"
        assert {port.port for port in ports} >= {
            int(scheduler.rpartition(":")[2]),
            int(worker.rpartition(":")[2]),
        }


def test_a_scheduler_of_the_users_own_with_tls(tmp_path, capsys):
    config = write_config(tmp_path / "tiny.py", agents='AgentSetup("Q", "Q"),', tasks=2)
    with local_workers(1, print) as theirs:
        address = theirs.cluster.scheduler_address
        with pytest.raises(InputError, match=f"no Dask scheduler answers at {address}"):
            run_config(config, tmp_path / "r", scheduler=address)
        names = {"ca-file": "tls_ca_file", "client.key": "tls_client_key", "client.cert": "tls_client_cert"}
        for field in names.values():
            (tmp_path / field).write_text(getattr(theirs.cluster.security, field))
        settings = {f"distributed.comm.tls.{name}": str(tmp_path / field) for name, field in names.items()}
        with dask.config.set(settings):
            assert run_config(config, tmp_path / "r", scheduler=address) == 0
    assert " open: " not in capsys.readouterr().out


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
def test_what_is_submitted(queue, lines, tmp_path):
    options = {"queue": "long", "walltime": "12:00:00", "job_extra_directives": ["--exclusive"]}
    shared = tmp_path / "seen by all"
    with job_queue(Workers(2, queue=queue, options=options, shared=str(shared))) as jobs:
        script = jobs.cluster.job_script().splitlines()
        (worker,) = (line for line in script if "dask_worker" in line)
        words = shlex.split(worker)
        scheduler = words[words.index("distributed.cli.dask_worker") + 1]
        assert scheduler.startswith("tls://")
        for option, content in (("ca-file", "CERTIFICATE"), ("cert", "CERTIFICATE"), ("key", "PRIVATE KEY")):
            path = Path(words[words.index(f"--tls-{option}") + 1])
            assert f"BEGIN {content}" in path.read_text()
            assert path.parent.parent == shared
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700, "only the user can enter it"
    assert set(lines) <= set(script)
    assert " --nthreads 1 " in worker
    assert "--no-dashboard" in words
    assert not list(shared.iterdir()), "credentials end with the run"


def test_the_users_configuration_of_dask_jobqueue_is_heard(tmp_path):
    with (
        dask.config.set({"jobqueue.slurm.memory": "9GB", "jobqueue.slurm.queue": "mine"}),
        job_queue(Workers(1, queue="slurm", options={"queue": "other"}, shared=str(tmp_path))) as jobs,
    ):
        script = jobs.cluster.job_script()
    assert "#SBATCH --mem=9G\n" in script
    assert "#SBATCH -p other\n" in script


@pytest.mark.parametrize(("options", "pages"), [({}, 404), ({"dashboard_address": "127.0.0.1:0"}, 200)])
def test_there_is_no_dashboard_unless_asked_for(tmp_path, options, pages):
    options = {"scheduler_options": {"host": "127.0.0.1", **options}}
    with job_queue(Workers(1, queue="slurm", options=options, shared=str(tmp_path))) as jobs:
        port = jobs.cluster.scheduler.http_server.port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", "/info/main/workers.html")
        assert connection.getresponse().status == pages


def test_options_that_dask_jobqueue_does_not_know(tmp_path):
    with refused("--cluster-options", "colour"):
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
def test_a_job_that_is_cancelled_is_submitted_again(tmp_path, monkeypatch, launch):
    config = write_config(tmp_path / "tiny.py", tasks=5, steps=150)
    assert run_config(config, tmp_path / "undisturbed") == 0
    command_script(tmp_path / "sbatch", SBATCH.format(folder=tmp_path))
    command_script(tmp_path / "scancel", '#!/bin/sh\nkill -s KILL -- "-$1"\n')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT", "1s")
    results = tmp_path / "r"
    here = 'scheduler_options={"host": "127.0.0.1", "dashboard_address": null}'
    process = launch(config, "--results", results, "--slurm", "--cluster-options", here)
    wait_for(lambda: checkpoints(results))
    (job,) = (tmp_path / "jobs").read_text().split()
    os.killpg(int(job), signal.SIGKILL)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert len((tmp_path / "jobs").read_text().split()) == 2
    assert contents(results) == contents(tmp_path / "undisturbed")
