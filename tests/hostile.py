"""Bad input of every kind for every reader and command: `python -m tests.hostile [CASES] [PART OF A NAME]`.

A `Target` is a file that this project reads, with the programs that read it. Each of them must take whatever
stands there (bytes that were changed, another kind of file, a JSON value of another type at any place under a
fresh checksum) with an exit code or an InputError, within seconds. `tests/test_hostile_input.py` tries some
cases of each; this command tries as many as it is told, and prints the first of each kind that is not taken.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

import proofs_checks
from experiments import peers, tables
from experiments import report as whole_report
from experiments.analysis import claims as empirical
from sfr_fa import report, run, status
from sfr_fa.agents import checkpoint
from sfr_fa.runs import load, publish, store, trial
from sfr_fa.runs.config import load_config
from sfr_fa.runs.store import RunFolder
from sfr_theory import check_gpi_bound
from sfr_theory.errors import InputError
from sfr_theory.files import load_approximations, load_problem
from tests.experiments.synthetic import sign_again
from tests.fa.agent_checks import started
from tests.fa.tiny import write_config

SECONDS = 20
"""None of these files takes more than a fraction of it."""
MEMORY = 6 * 2**30
DEEP = 100_000

# --- What a file may hold in place of what belongs there ----------------------------------------------

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 10**9, 10**30, -(10**30), 0.5, -0.0, 1e308, 1e-320, float("nan"),
    float("inf"), "", "x", "0", "1/0", "1e999999999", "nan", "../../x", "/", "\x00", "a" * 5000, "[bold]", [],
    [[]], [None], [0], {}, {"": 0}, {"tensor": "nothing"}, [[[[[[0]]]]]],
)  # fmt: skip


OTHER_BYTES = (
    b"", b"\x00", b"\xff\xfe\x00", b"null", b"{}", b"[]", b"[" * DEEP, b'{"a":' * DEEP, b"1" * 10_000, b"NaN",
    b'"' + b"a" * DEEP, b"PK\x05\x06" + bytes(18), b"\xff" * 8 + b"{}", b"\x93NUMPY\x01\x00v\x00{}",
    b"\n" * 100,
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a tree of JSON."""
    yield path
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, entry in entries:
        yield from places(entry, (*path, key))


def mutated(content: Any, rng: random.Random) -> Any:
    """A tree with another value, one less, or one more, at a random place; deep places are as likely as
    shallow ones."""
    content = copy.deepcopy(content)
    by_depth: dict[int, list[tuple[Any, ...]]] = {}
    for path in places(content):
        by_depth.setdefault(len(path), []).append(path)
    path = rng.choice(by_depth[rng.choice(list(by_depth))])
    if not path:
        return rng.choice(VALUES)
    parent = content
    for key in path[:-1]:
        parent = parent[key]
    match rng.randrange(5):
        case 0 if isinstance(parent, dict):
            del parent[path[-1]]
        case 0:
            parent.pop(path[-1])
        case 1 if isinstance(parent, dict):
            parent[rng.choice(["x", "", "\x00", "comment"])] = rng.choice(VALUES)
        case 1:
            parent.append(rng.choice([*VALUES, *parent]))
        case _:
            parent[path[-1]] = copy.deepcopy(rng.choice(VALUES))
    return content


def damaged_bytes(content: bytes, rng: random.Random) -> bytes:
    """Some bytes changed, cut off, doubled, or all of it something else."""
    match rng.randrange(8):
        case 0:
            return content[: rng.randrange(len(content) + 1)]
        case 1:
            return content + content[: rng.randrange(len(content) + 1)]
        case 2:
            return rng.choice(OTHER_BYTES)
        case 3:
            start, length = rng.randrange(len(content) + 1), rng.randrange(1, 200)
            return content[:start] + rng.randbytes(length) + content[start:]
        case _:
            changed = bytearray(content)
            for _ in range(rng.choice([1, 1, 2, 8])):
                if changed:
                    changed[rng.randrange(len(changed))] = rng.choice([0, 255, 0x7F, rng.randrange(256)])
            return bytes(changed)


def other_files(path: Path) -> dict[str, Callable[[], object]]:
    """What is no file, or none that can be read, in place of one."""

    def unreadable() -> None:
        path.write_bytes(b"{}")
        path.chmod(0)

    return {
        "directory": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
        "loop of links": lambda: path.symlink_to(path),
        "link to nowhere": lambda: path.symlink_to("nowhere"),
        "endless device": lambda: path.symlink_to("/dev/zero"),
        "full device": lambda: path.symlink_to("/dev/full"),
        "huge": lambda: (path.touch(), os.truncate(path, 1 << 40)),
        "unreadable": unreadable,
    }


# --- Other content under a fresh checksum --------------------------------------------------------------


def json_mutations(content: bytes, rng: random.Random) -> bytes:
    return json.dumps(mutated(json.loads(content), rng)).encode()


def signed_mutations(content: bytes, rng: random.Random) -> bytes:
    """The checksums are as they should be."""
    tree = json.loads(content)
    tree.pop("sha256")
    times = {name: tree.pop(name) for name in store.TIMES if name in tree}
    changed = mutated(tree, rng) if rng.random() < 0.8 or not times else tree
    if not isinstance(changed, dict):
        return json.dumps(changed).encode()
    if times and changed is tree:
        seconds = mutated(times["seconds"], rng)
        times = {"seconds": seconds, "seconds_sha256": store.digest(seconds)}
    return json.dumps(changed | times | {"sha256": store.digest(changed)}).encode()


def state_mutations(content: bytes, rng: random.Random) -> bytes:
    """A saved state whose description, tree or arrays were changed, under a fresh checksum."""
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(content)
        with safetensors.safe_open(file.name, framework="numpy") as opened:
            metadata = dict(opened.metadata())
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    match rng.randrange(6):
        case 0:
            metadata["description"] = json.dumps(mutated(json.loads(metadata["description"]), rng))
        case 1 if arrays:
            name = rng.choice(list(arrays))
            other: list[Any] = [np.zeros(()), np.zeros(0), np.zeros((2, 3)), np.full(3, np.nan),
                                arrays[name].astype(np.float16), np.ones(5, dtype=np.int8)]  # fmt: skip
            arrays[name] = rng.choice(other)
        case 2 if arrays:
            del arrays[rng.choice(list(arrays))]
        case _:
            metadata["state"] = json.dumps(mutated(json.loads(metadata["state"]), rng))
    metadata["sha256"] = checkpoint._checksum(metadata, arrays)
    return safetensors.numpy.save(arrays, metadata)


OTHER_ARRAYS = (
    np.full((1, 1, 2, 2), np.nan), np.full((1, 1, 2, 2), np.inf), np.full((1, 1, 2, 2), 1e308),
    *(np.zeros((1, 1, 2, 2), dtype=kind) for kind in ("<U1", "complex", "bool", "M8[s]")),
    np.zeros((0, 1, 2, 2)), np.array(1.0), np.zeros((2, 2)), np.array([True]),
)  # fmt: skip


def npz_mutations(content: bytes, rng: random.Random) -> bytes:
    """Archives of other things, and such that promise much more than they hold."""
    buffer = io.BytesIO()
    header = io.BytesIO()
    promised = {
        "descr": rng.choice(["<f8", "|O", "|S1000000000", "<U100"]),
        "fortran_order": False,
        "shape": rng.choice([(10**12,), (2**62,), (2**40, 2**40), (-1,), (3, 10**9), ()]),
    }
    np.lib.format.write_array_header_1_0(header, promised)
    match rng.randrange(5):
        case 0:
            with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("xi.npy", header.getvalue() + b"\0" * 1000)
        case 1:
            with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("xi.npy", bytes(50_000_000))  # 1,000 times smaller in the file
        case 2:
            arrays = {"xi": rng.choice(OTHER_ARRAYS)} | ({"b": np.zeros(3)} if rng.random() < 0.2 else {})
            np.savez(buffer, **arrays)
        case 3:
            with zipfile.ZipFile(buffer, "w", rng.choice([zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])) as archive:
                archive.writestr(rng.choice(["xi.npy", "x" * 100, "../x.npy"]), content[:500])
            whole = bytearray(buffer.getvalue())
            whole[rng.randrange(len(whole))] ^= 255
            return bytes(whole)
        case _:
            buffer.write(header.getvalue())
    return buffer.getvalue()


def csv_mutations(content: bytes, rng: random.Random) -> bytes:
    rows = [line.split(",") for line in content.decode().splitlines()]
    row = rng.choice(rows)
    row[rng.randrange(len(row))] = str(rng.choice(VALUES))
    if rng.random() < 0.2:
        rows.remove(row)
    return "\n".join(",".join(row) for row in rows).encode("utf-8", "replace")


# --- Files that are right -----------------------------------------------------------------------------

Read = Callable[[Path], object]
COUNTEREXAMPLE = Path(proofs_checks.__file__).parent / "counterexamples/absolute_norm.json"
PEERS = """environment,agent,seed,train_steps,utility,linear,steps,discounted_return,training_seconds,seconds
four-room,SF,0,9,u,True,0,1.5,2.5,0.5
"""


@dataclass(frozen=True)
class Target:
    """A file below a folder, what reads it, and how it can be changed so that its checksum is right."""

    file: str
    readers: Mapping[str, Read]
    """Each is given the folder."""
    mutate: Callable[[Path, random.Random], None]


def in_place(mutation: Callable[[bytes, random.Random], bytes]) -> Callable[[Path, random.Random], None]:
    def mutate(path: Path, rng: random.Random) -> None:
        path.write_bytes(mutation(path.read_bytes(), rng))

    return mutate


def with_its_table(path: Path, rng: random.Random) -> None:
    """A table was changed, and the JSON beside it vouches for it."""
    table = csv_mutations(path.read_bytes(), rng)
    path.write_bytes(table)
    sign_again(path.with_suffix(".json"), lambda content: content.update(csv_sha256=store.digest(table)))


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """What is printed is thrown away."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


class StopNowError(Exception):
    """To leave a trial unfinished."""


@silence()
def material(folder: Path) -> list[Target]:
    """Files of every kind in a folder, and what reads them."""
    config = write_config(folder / "tiny.py", repetitions=2)
    smoke, problem = "runs/tiny/smoke", folder / "problem.json"
    run.main(run.Options(config, results=str(folder / "runs")))
    first, *_ = load_config(config).trials("smoke")

    def stop(row: object) -> None:
        raise StopNowError

    with contextlib.suppress(StopNowError):
        trial.run_trial(first, RunFolder(folder / "begun"), stop)
    (begun,) = (folder / "begun").rglob("*.safetensors")
    publish.write(publish.from_folder(folder / smoke), folder / "tiny")
    shutil.copy(COUNTEREXAMPLE, problem)
    np.savez(folder / "xi.npz", xi=np.array(load_problem(problem).approximations, dtype=float))
    agent = started("SFR")
    agent.save(folder / "agent.safetensors")
    (folder / "data").mkdir()
    gpi = check_gpi_bound.Options(mdps=9, workers=1, json=str(folder / "data/gpi_bound.json"),
                                  counterexamples=str(folder / "ce"))  # fmt: skip
    check_gpi_bound.main(gpi)
    (folder / "peers.csv").write_text(PEERS)

    def bound(here: Path, **options: Any) -> object:
        return check_gpi_bound.main(check_gpi_bound.Options(
            mdp=(str(here / "problem.json"),), workers=1, counterexamples=str(here / "ce"), **options
        ))  # fmt: skip

    def published(here: Path, output: Path) -> object:
        return publish.main(publish.Options((str(here / smoke),), output=str(output)))

    def page(here: Path, what: str) -> object:
        return report.main(report.Options((str(here / what),), output=str(here / "page.html")))

    of_runs: dict[str, Read] = {
        "load": lambda here: load.load(here / smoke),
        "sfr_fa.status": lambda here: status.main(status.Options(str(here / "runs"))),
        "sfr_fa.run": lambda here: run.main(run.Options(config, results=str(here / "runs"))),
        "sfr_fa.runs.publish": lambda here: published(here, here / "published"),
        "sfr_fa.report": lambda here: page(here, smoke),
        "experiments.tables": lambda here: tables.main(tables.Options((str(here / smoke),))),
    }
    of_tables: dict[str, Read] = {
        "load": lambda here: load.load(here / "tiny"),
        "sfr_fa.runs.publish": lambda here: published(here, here),
        "experiments.analysis.claims": lambda here: empirical.main(empirical.Options(str(here))),
        "sfr_fa.report": lambda here: page(here, "tiny.csv"),
        "experiments.tables": lambda here: tables.main(tables.Options((str(here / "tiny.csv"),))),
    }
    key = first.key
    return [
        Target("problem.json", {
            "load_problem": lambda here: load_problem(here / "problem.json"),
            "check_gpi_bound": bound,
        }, in_place(json_mutations)),
        Target("xi.npz", {
            "load_approximations": lambda here: load_approximations(here / "xi.npz"),
            "check_gpi_bound": lambda here: bound(here, approximations=str(here / "xi.npz")),
        }, in_place(npz_mutations)),
        Target(f"{smoke}/manifest.json", of_runs, in_place(signed_mutations)),
        Target(f"{smoke}/{key}.json", of_runs, in_place(signed_mutations)),
        Target(f"{smoke}/{key}.csv", of_runs, with_its_table),
        Target("tiny.json", of_tables, in_place(signed_mutations)),
        Target("tiny.csv", of_tables, with_its_table),
        Target(str(begun.relative_to(folder)), {
            "run_trial": lambda here: trial.run_trial(first, RunFolder(here / "begun")),
        }, in_place(state_mutations)),
        Target("agent.safetensors", {
            "GpiAgent.load": lambda here: started("SFR").load(here / "agent.safetensors"),
        }, in_place(state_mutations)),
        Target("data/gpi_bound.json", {
            "experiments.report": lambda here: whole_report.main(
                whole_report.Options(str(here / "data"), str(here / "page.html"), str(here / "none"))),
        }, in_place(json_mutations)),
        Target("peers.csv", {"read_rows": lambda here: peers.read_rows(here / "peers.csv")},
               in_place(csv_mutations)),
        Target("tiny.py", {"load_config": lambda here: load_config(str(here / "tiny.py"))},
               in_place(damaged_bytes)),
    ]  # fmt: skip


# --- Trying -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """What a reader did with bad input that it must not do."""

    target: str
    reader: str
    what: str
    error: str


@contextlib.contextmanager
def deadline(seconds: int) -> Iterator[None]:
    def late(number: int, frame: object) -> None:
        raise TimeoutError(f"not finished after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def taken(reader: Read, folder: Path) -> str:
    """Empty if a reader ends as it should, else what happened."""
    try:
        with deadline(SECONDS), silence(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader(folder)
    except InputError as error:
        return (
            "" if "\n" not in str(error) and len(str(error)) < 2000 else f"not a sentence: {str(error)[:300]}"
        )
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f for f in frames if "/tests/" not in f.filename and "site-packages" not in f.filename]
        place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
        return f"{type(error).__name__}: {str(error)[:150]} ({place})"
    return ""


def spoil(path: Path, target: Target, rng: random.Random) -> str:
    """Put something wrong in the place of a file; says what."""
    kind = rng.choice(["bytes", "bytes", "content", "content", "content", "content", "other"])
    match kind:
        case "bytes":
            path.write_bytes(damaged_bytes(path.read_bytes(), rng))
        case "content":
            target.mutate(path, rng)
        case _:
            path.unlink()
            kinds = other_files(path)
            kind = rng.choice(list(kinds))
            kinds[kind]()
    return kind


@contextlib.contextmanager
def copied(folder: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        yield Path(shutil.copytree(folder, Path(name, "copy")))


def attack(target: Target, good: Path, cases: int, rng: random.Random, readers: int = 1) -> Iterator[Finding]:
    """Spoil the file again and again, and let some of its readers have it."""
    for _ in range(cases):
        with copied(good) as folder:
            what = spoil(folder / target.file, target, rng)
            for reader in rng.sample(list(target.readers), min(readers, len(target.readers))):
                error = taken(target.readers[reader], folder)
                if error:
                    yield Finding(target.file, reader, what, error)


def check_material(targets: list[Target], good: Path) -> None:
    """Files that are right must be taken, or all else would prove nothing."""
    for target in targets:
        for name, read in target.readers.items():
            with copied(good) as folder:
                error = taken(read, folder)
                assert not error, f"{target.file}: {name} does not take what is right: {error}"


def main(cases: int, part: str = "", seed: int = 0) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "good")
        folder.mkdir()
        targets = material(folder)
        check_material(targets, folder)
        found: Counter[tuple[str, str, str]] = Counter()
        for target in targets:
            if part not in target.file:
                continue
            began = time.monotonic()
            for finding in attack(target, folder, cases, random.Random(seed)):
                where = (
                    finding.target,
                    finding.reader,
                    finding.error.rpartition("(")[2] + finding.error[:30],
                )
                found[where] += 1
                if found[where] == 1:
                    print(finding, flush=True)
            print(f"{target.file}: {cases} cases, {time.monotonic() - began:.0f} s", flush=True)
        print(f"{found.total()} not taken, of {len(found)} kinds")
        return bool(found)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100, *sys.argv[2:3]))
