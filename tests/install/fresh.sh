#!/bin/bash
# A wheel of this checkout in fresh environments outside of it, doing what the README says.
#   bash tests/install/fresh.sh [PYTHON] [extra ...]       by default python3, without extras and with [fa] and [mo]
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${1:-python3}
shift || true
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
git -C "$root" archive HEAD | tar -x -C "$folder" --one-top-level=source
"$python" -m venv "$folder/build"
"$folder/build/bin/pip" install --quiet "setuptools>=77"  # as pyproject.toml asks
(cd "$folder/source" && "$folder/build/bin/python" -c "from setuptools import build_meta; build_meta.build_wheel('..')" > /dev/null)
wheel=$(ls "$folder"/*.whl)
mkdir "$folder/elsewhere" && cd "$folder/elsewhere"
for extra in "${@:-base fa mo}"; do
  for name in $extra; do
    echo "== $("$python" --version), $name"
    "$python" -m venv "$folder/$name"
    bin="$folder/$name/bin"
    wanted="$wheel"; [ "$name" = base ] || wanted="$wheel[$name]"
    "$bin/pip" install --quiet --constraint "$root/constraints.txt" "$wanted"
    "$bin/python" - <<'PY'
import sfr_theory, sys
assert "site-packages" in sfr_theory.__file__, sfr_theory.__file__
print("sfr", sfr_theory.__version__, "on", sys.version.split()[0])
PY
    "$bin/sfr" --help > /dev/null
    "$bin/python" -m sfr_theory.check_gpi_bound --mdps 200 > /dev/null
    if [ "$name" = base ]; then
      "$bin/python" -c 'import importlib.util as u; assert u.find_spec("torch") is None and u.find_spec("z3") and u.find_spec("numba")'
      ! "$bin/python" -c 'import sfr_fa' 2> message || { echo "sfr_fa imports without its extra"; exit 1; }
      grep -q "sfr\[fa\]" message
    else
      "$bin/python" "$root/examples/own_environment.py" | tail -1
    fi
    if [ "$name" = mo ]; then "$bin/python" -W ignore "$root/examples/deep_sea_treasure.py"; fi
  done
done
echo "all is well"
