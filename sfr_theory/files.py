"""Transfer problems as JSON files that a person can write by hand, in numbers that are read exactly:

    {"gamma": "9/10", "num_features": 2,
     "transitions": [{"state": 0, "action": 0, "next_state": 0, "feature": 1, "probability": "1/2"}, ...],
     "target": ["1", "-1/2"], "sources": [["0", "1"], ...],
     "approximations": [xi~ for each source, shape (S, A, F)],     optional: absent means the exact xi
     "feature_vectors": [[...], ...],                              optional: absent means one-hot
     "comment": "why this problem is interesting"}                 optional

A number is a JSON number or text with a decimal or a fraction. States and actions are counted from 0, and
every (state, action) pair must be present. Outcomes that are not listed have probability 0; one that is
listed twice has the sum.

Approximations may also come as an NPZ file with one array of shape (I, S, A, F), as a learner writes it.
Neither format can execute code. Sizes are limited: `sfr_theory.reading` for files, a joint kernel of
`MAX_KERNEL_ENTRIES`, arrays of `MAX_ARCHIVE_BYTES` once unpacked.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sfr_theory.arithmetic import Array, exact_array, is_exact, rational, zeros
from sfr_theory.cli import write_atomic
from sfr_theory.errors import InputError
from sfr_theory.mdp import ROW_SUM_TOLERANCE, FiniteMDP, TransferProblem, discount
from sfr_theory.reading import read_bytes, read_json

MDP_KEYS = ("gamma", "num_features", "transitions", "feature_vectors", "comment")
TASK_KEYS = ("target", "sources", "approximations")
MAX_KERNEL_ENTRIES = 10_000_000
MAX_ARCHIVE_BYTES = 2**30
OUTCOME_KEYS = ("state", "action", "next_state", "feature", "probability")


def load_problem(path: str | Path) -> TransferProblem:
    """A transfer problem from a JSON file, in rational arithmetic."""
    content = read_json(Path(path), _without_duplicates)
    try:
        return problem_from_json(content)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def save_problem(problem: TransferProblem, path: str | Path, comment: str = "") -> None:
    """Write a transfer problem as JSON; exact numbers stay exact."""
    write_atomic(Path(path), (dump(problem_to_json(problem, comment)) + "\n").encode())


def load_approximations(path: str | Path) -> Array:
    """The one array of an NPZ file: xi~_i of every source, shape (I, S, A, F)."""
    content = read_bytes(Path(path))
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
            if size > MAX_ARCHIVE_BYTES:
                raise InputError(f"{path} unpacks to {size:,} bytes; at most {MAX_ARCHIVE_BYTES:,} are read")
            arrays = {
                entry.filename.removesuffix(".npy"): np.load(
                    io.BytesIO(archive.read(entry)), allow_pickle=False
                )
                for entry in archive.infolist()
            }
    except InputError:
        raise
    except Exception:  # what a damaged archive leads to is anybody's guess: zlib, struct, memory, ...
        raise InputError(f"{path} is not an NPZ file of plain arrays; np.savez writes one") from None
    if len(arrays) != 1:
        raise InputError(
            f"{path} holds {len(arrays)} arrays {sorted(arrays)}; it needs exactly one, of shape (sources, "
            f"states, actions, features): write it with np.savez(path, xi=array)"
        )
    return next(iter(arrays.values()))


def problem_from_json(content: Any) -> TransferProblem:
    """A transfer problem from parsed JSON."""
    _check_keys(content, ("gamma", "num_features", "transitions", "target", "sources"), MDP_KEYS + TASK_KEYS)
    mdp = _mdp_from_json(content)
    approximations = content.get("approximations")
    return TransferProblem(
        mdp,
        _numbers(content["target"], "target", 1),
        _numbers(content["sources"], "sources", 2),
        None if approximations is None else _numbers(approximations, "approximations", 4),
    )


def problem_to_json(problem: TransferProblem, comment: str = "") -> dict[str, Any]:
    """A transfer problem as JSON values; rationals become text."""
    content = {"comment": comment} if comment else {}
    content |= _mdp_to_json(problem.mdp)
    content |= {"target": _plain(problem.target), "sources": _plain(problem.sources)}
    if problem.approximations is not None:
        content["approximations"] = _plain(problem.approximations)
    return content


def dump(content: Mapping[str, Any]) -> str:
    """JSON with one line for each transition and each innermost row, so that a person can read it."""

    def render(value: Any, indent: int) -> str:
        pad = " " * indent
        if isinstance(value, dict) and indent == 0:
            entries = (f"  {json.dumps(key)}: {render(entry, 2)}" for key, entry in value.items())
            return "{\n" + ",\n".join(entries) + "\n}"
        if isinstance(value, list) and any(isinstance(entry, (list, dict)) for entry in value):
            entries = (f"{pad}  {render(entry, indent + 2)}" for entry in value)
            return "[\n" + ",\n".join(entries) + f"\n{pad}]"
        return json.dumps(value, allow_nan=False)

    return render(dict(content), 0)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise InputError(f'the key "{twice}" stands twice in one object')
    return content


def _check_keys(content: Any, required: tuple[str, ...], known: tuple[str, ...]) -> None:
    if not isinstance(content, dict):
        raise InputError(
            f"the file holds {_kind(content)}; expected an object with keys {', '.join(required)}"
        )
    for key in required:
        if key not in content:
            raise InputError(f'"{key}" is missing; the required keys are {", ".join(required)}')
    for key in content:
        if key not in known:
            raise InputError(f'"{key}" is not a known key; the known keys are {", ".join(known)}')


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _index(outcome: Mapping[str, Any], key: str, place: str, limit: int | None) -> int:
    value = outcome[key]
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{place}: {key} is {value!r}; it must be a whole number")
    if value < 0 or (limit is not None and value >= limit):
        legal = "at least 0" if limit is None else f"between 0 and {limit - 1}"
        raise InputError(f"{place}: {key} is {value}; it must be {legal}")
    return value


def _number(value: Any, place: str) -> Any:
    try:
        return rational(value)
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def _numbers(values: Any, name: str, depth: int) -> Array:
    """Nested lists of the given depth as exact numbers; an error names the entry."""

    def read(value: Any, place: str, depth: int) -> Any:
        if depth == 0:
            return _number(value, place)
        if not isinstance(value, list):
            raise InputError(f"{place} is {_kind(value)}; it must be a list")
        rows = [read(entry, f"{place}[{i}]", depth - 1) for i, entry in enumerate(value)]
        if depth > 1 and len({len(row) for row in rows}) > 1:
            lengths = [len(row) for row in rows]
            odd = next(i for i, length in enumerate(lengths) if length != lengths[0])
            raise InputError(
                f"{place} is ragged: entry 0 has length {lengths[0]}, entry {odd} has length {lengths[odd]}"
            )
        return rows

    nested = read(values, name, depth)
    return exact_array(nested) if nested else np.empty((0,) * depth, dtype=object)


def _mdp_from_json(content: Mapping[str, Any]) -> FiniteMDP:
    gamma = discount(content["gamma"], exact=True)
    num_features = content["num_features"]
    if isinstance(num_features, bool) or not isinstance(num_features, int) or num_features < 1:
        raise InputError(f"num_features is {num_features!r}; it must be a whole number of at least 1")
    outcomes = content["transitions"]
    if not isinstance(outcomes, list) or not outcomes:
        raise InputError("transitions must be a list with at least one entry")
    for k, outcome in enumerate(outcomes):
        if not isinstance(outcome, dict) or set(outcome) != set(OUTCOME_KEYS):
            raise InputError(f"transitions[{k}] must be an object with the keys {', '.join(OUTCOME_KEYS)}")
    num_states = 1 + max(_index(o, "state", f"transitions[{k}]", None) for k, o in enumerate(outcomes))
    num_actions = 1 + max(_index(o, "action", f"transitions[{k}]", None) for k, o in enumerate(outcomes))
    entries = num_states**2 * num_actions * num_features
    if entries > MAX_KERNEL_ENTRIES:
        raise InputError(
            f"the joint kernel would have {entries} entries; at most {MAX_KERNEL_ENTRIES} are read"
        )
    pairs = {(outcome["state"], outcome["action"]) for outcome in outcomes}
    if len(pairs) < num_states * num_actions:
        state, action = next(pair for pair in np.ndindex(num_states, num_actions) if pair not in pairs)
        raise InputError(
            f"state {state}, action {action} has no transition; each of the {num_states} states needs "
            f"one for each of the {num_actions} actions"
        )
    kernel = zeros((num_states, num_actions, num_states, num_features), like=np.empty(0, dtype=object))
    rounded = np.zeros((num_states, num_actions), dtype=bool)
    for k, outcome in enumerate(outcomes):
        place = f"transitions[{k}]"
        next_state = _index(outcome, "next_state", place, num_states)
        feature = _index(outcome, "feature", place, num_features)
        probability = _number(outcome["probability"], f"{place}: probability")
        if probability < 0:
            raise InputError(f"{place}: probability is {probability}; it cannot be negative")
        kernel[outcome["state"], outcome["action"], next_state, feature] += probability
        rounded[outcome["state"], outcome["action"]] |= isinstance(outcome["probability"], float)
    for state, action in np.ndindex(num_states, num_actions):
        total = kernel[state, action].sum()
        # JSON decimals such as 0.333333333 cannot sum to 1 exactly; text can, and must.
        if total != 1 and not (rounded[state, action] and abs(total - 1) <= rational(ROW_SUM_TOLERANCE)):
            raise InputError(
                f"the probabilities of state {state}, action {action} sum to {total}; they must sum to 1"
            )
        kernel[state, action] = kernel[state, action] / total
    vectors = content.get("feature_vectors")
    return FiniteMDP(kernel, gamma, None if vectors is None else _numbers(vectors, "feature_vectors", 2))


def _plain(array: Array) -> Any:
    """Nested lists: rationals as text, floats as numbers."""
    if not is_exact(array):
        return array.tolist()
    return np.array([str(value) for value in array.reshape(-1)], dtype=object).reshape(array.shape).tolist()


def _mdp_to_json(mdp: FiniteMDP) -> dict[str, Any]:
    def plain(number: Any) -> Any:
        return str(number) if mdp.is_exact else float(number)

    content: dict[str, Any] = {
        "gamma": plain(mdp.gamma),
        "num_features": mdp.num_features,
        "transitions": [
            dict(zip(OUTCOME_KEYS, (*(int(i) for i in index), plain(mdp.kernel[tuple(index)])), strict=True))
            for index in np.argwhere(mdp.kernel != 0)
        ],
    }
    if mdp.feature_vectors is not None:
        content["feature_vectors"] = _plain(mdp.feature_vectors)
    return content
