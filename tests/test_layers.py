"""Who may import whom: the arrows of the architecture, read off the source."""

import ast
import collections

import pytest

from tests.commands import ROOT, printed_by

PACKAGES = ("sfr_theory", "proofs_checks", "sfr_fa", "experiments", "benchmarks")

# package or module prefix -> what it may import of ours
ALLOWED = {
    "sfr_theory": ("sfr_theory",),
    "proofs_checks": ("proofs_checks", "sfr_theory"),
    "sfr_fa": (
        "sfr_fa",
        "sfr_theory.__version__",
        "sfr_theory.gpi",
        "sfr_theory.bounds.affine_distance",
        "sfr_theory.claims",
        "sfr_theory.atomic",
        "sfr_theory.reading",
        "sfr_theory.cli",
        "sfr_theory.compiled",
        "sfr_theory.errors",
        "sfr_theory.mdp.FiniteMDP",
        "sfr_theory.arithmetic.float_array",
    ),
    "experiments": PACKAGES[:4],
    "benchmarks": PACKAGES,
}
FORBIDDEN = {
    "sfr_fa.agents": ("sfr_fa.environments", "sfr_fa.runs"),
    "sfr_fa.kernels": tuple(allowed for allowed in ALLOWED["sfr_fa"] if allowed != "sfr_theory.compiled"),
    "sfr_theory.arithmetic": ("sfr_theory.mdp", "sfr_theory.solve"),
}


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path):
    """The dotted names that a file imports, `from a import b` as a.b."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def within(name, prefixes):
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


FILES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def test_there_is_something_to_check():
    assert len(FILES) > 10
    assert "sfr_theory.errors.InputError" in imports(ROOT / "sfr_theory" / "mdp.py")


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_follow_the_arrows(path):
    name = module_name(path)
    allowed = ALLOWED[name.split(".")[0]]
    for imported in imports(path):
        if within(imported, PACKAGES):
            assert within(imported, allowed), f"{name} must not import {imported}"
        for module, forbidden in FORBIDDEN.items():
            if within(name, (module,)) and not within(imported, (module,)):
                assert not within(imported, forbidden), f"{name} must not import {imported}"


def test_a_public_class_has_a_name_of_its_own():
    """Two things under one name are read as one; only the `Options` of each command are alike in kind."""
    places = collections.defaultdict(list)
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module_name(path))
    del places["Options"]
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}


IMPORT_ALL = """
import importlib, pkgutil, sys
blocked, packages = sys.argv[1].split(), sys.argv[2].split()
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in blocked:
            raise ImportError(f"{name} is blocked")
for name in blocked:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Blocker())
for name in packages:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
            print(module.name)
"""


def imported_without(blocked, packages):
    """All modules of the packages, imported where the blocked ones cannot be."""
    return set(printed_by("-c", IMPORT_ALL, blocked, " ".join(packages), cwd=ROOT).split())


def test_the_theory_imports_without_torch_numba_gymnasium_or_z3():
    found = imported_without("torch numba gymnasium z3", ("sfr_theory", "proofs_checks"))
    assert {"sfr_theory.check_gpi_bound", "proofs_checks.gpi_bound"} <= found


@pytest.mark.parametrize("module", ["sfr_fa", "experiments.tables"])
def test_environments_are_registered_and_results_compared_without_large_libraries(module):
    code = (
        f"import sys, gymnasium, {module}; assert 'sfr/Racer-v0' in gymnasium.registry\n"
        "print({'matplotlib', 'numba', 'torch'} & {*sys.modules})"
    )
    assert printed_by("-c", code, cwd=ROOT) == "set()\n"


@pytest.mark.slow
def test_everything_imports_without_what_windows_lacks():
    found = imported_without("fcntl resource termios pwd grp", PACKAGES)
    assert {"sfr_fa.runs.workers", "experiments.run", "benchmarks.engines"} <= found
