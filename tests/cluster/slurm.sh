#!/usr/bin/env bash
# Runs a small experiment with --slurm on a Slurm of one machine, and cancels all its jobs on the way.
#
#     bash tests/cluster/slurm.sh [PYTHON]
#
# For Debian and its relatives, as root. Missing packages (slurmctld, slurmd, slurm-client, munge) are installed;
# everything else (configuration, keys, state and logs of the daemons) is in a folder that is removed at the end,
# and no service of the machine is touched. Exit code 0: the run completed, and its tables are those of a run
# without Slurm.
set -euo pipefail

cd "$(dirname "$0")/../.."
python=${1:-python3}
place=$(mktemp -d /tmp/sfr-slurm.XXXXXX)
daemons=()

clean_up() {
    code=$?
    if ((code)); then tail -n 20 "$place"/*.log "$place"/jobs/* 2>/dev/null || true; fi
    scancel --quiet --user "$(id -un)" 2>/dev/null || true
    for ((k = ${#daemons[@]} - 1; k >= 0; k--)); do
        kill "${daemons[k]}" 2>/dev/null && wait "${daemons[k]}" 2>/dev/null || true
    done
    rm -rf "$place"
    exit "$code"
}
trap clean_up EXIT

fail() {
    echo "error: $1" >&2
    exit 1
}

wait_for() { # a description, then a command that succeeds sooner or later
    for _ in $(seq 300); do
        if "${@:2}" >/dev/null 2>&1; then return; fi
        sleep 0.2
    done
    fail "$1 has not happened within 60 s"
}

# --- Packages

(($(id -u) == 0)) || fail "this starts slurmd, which needs root"
"$python" -c "import dask_jobqueue, sfr_fa.run" || fail "install the project first: pip install -e '.[fa,cluster]'"
if ! command -v slurmctld slurmd sbatch munged >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        slurmctld slurmd slurm-client munge >/dev/null
fi

# --- A cluster of one node

host=$(hostname -s)
export SLURM_CONF=$place/slurm.conf
mkdir "$place"/{controller,node,jobs,results}
dd if=/dev/urandom bs=128 count=1 of="$place/munge.key" status=none
chmod 600 "$place/munge.key"
chmod 755 "$place"
cat >"$SLURM_CONF" <<END
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$place/munge.socket
SlurmctldPort=16817
SlurmdPort=16818
SlurmctldPidFile=$place/slurmctld.pid
SlurmdPidFile=$place/slurmd.pid
StateSaveLocation=$place/controller
SlurmdSpoolDir=$place/node
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
$(slurmd -C | sed -n "s/^NodeName=[^ ]*/NodeName=$host NodeAddr=127.0.0.1/p") State=UNKNOWN
PartitionName=long Nodes=$host Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
END

munged --foreground --force --socket="$place/munge.socket" --key-file="$place/munge.key" \
    --pid-file="$place/munged.pid" --seed-file="$place/munged.seed" --log-file="$place/munged.log" \
    >>"$place/munged.log" 2>&1 &
daemons+=($!)
wait_for "an answer of munged" munge --no-input --socket="$place/munge.socket"
slurmctld -D >"$place/slurmctld.log" 2>&1 &
daemons+=($!)
slurmd -D -N "$host" >"$place/slurmd.log" 2>&1 &
daemons+=($!)
wait_for "an idle node" bash -c "sinfo --noheader --format=%T | grep --quiet idle"
sinfo

# --- The same experiment without Slurm and with it

run() {
    "$python" -m sfr_fa.run tests/cluster/small.py --results "$place/results/$1" "${@:2}"
}

echo "a partition that is not there:"
code=0
run nowhere --slurm --cluster-options queue=nowhere interface=lo || code=$?
((code == 2)) || fail "exit code $code instead of 2"
run here
run slurm --workers 2 --slurm \
    --cluster-options queue=long memory=1GB walltime=00:10:00 interface=lo "log_directory=$place/jobs" &
run_id=$!
daemons+=("$run_id")
wait_for "a checkpoint of a job" bash -c "find '$place/results/slurm' -name '*.task-*.npz' | grep --quiet ."
squeue
scancel --user "$(id -un)"
echo "all jobs are cancelled; the run must submit others"
wait "$run_id"
diff --recursive --exclude='*.json' "$place/results/here" "$place/results/slurm"
echo "the tables are those of a run without Slurm"
