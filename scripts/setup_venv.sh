#!/usr/bin/env bash
# Makes .venv with the pinned dependencies and this package, editable, with all extras; then makes the stamp file.
#   scripts/setup_venv.sh STAMP        PYTHON=... chooses the interpreter
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
stamp=${1:-.venv/.stamp}
venv=.venv

die() { printf 'setup: %s\n' "$@" >&2; exit 1; }

# Two makes at once: the second waits, then finds the work done.
if command -v flock >/dev/null 2>&1; then
  exec 9<pyproject.toml
  flock 9
  [ -e "$stamp" ] && [ "$stamp" -nt pyproject.toml ] && [ "$stamp" -nt constraints.txt ] && exit 0
fi

supported() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
can_make_venv() { "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; }

find_python() {
  local candidate without_venv=""
  for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    supported "$candidate" || continue
    can_make_venv "$candidate" && { echo "$candidate"; return; }
    without_venv=${without_venv:-$candidate}
  done
  if [ -n "$without_venv" ]; then
    die "$without_venv lacks venv or ensurepip." \
      "On Debian or Ubuntu: apt-get install python3-venv. Elsewhere: install a full Python 3.11 or later."
  fi
  die "Python 3.11 or later is needed${PYTHON:+ (PYTHON=$PYTHON is not one)}; found: $({ python3 -V || echo none; } 2>/dev/null)." \
    "Install one, or name it: make setup PYTHON=path/to/python3.12"
}

if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1 || ! supported "$venv/bin/python"; then
  python=$(find_python)
  echo "setup: $venv from $("$python" -V)"
  "$python" -m venv --clear "$venv"
fi

pip=("$venv/bin/python" -m pip --disable-pip-version-check --quiet install --constraint constraints.txt)
echo "setup: installing the pinned dependencies (one or two minutes the first time)"
touch "$stamp.begun" # a change of the pins while pip runs counts as a later one
"${pip[@]}" setuptools
"${pip[@]}" --no-build-isolation --editable '.[dev]'
mv "$stamp.begun" "$stamp"
echo "setup: done"
