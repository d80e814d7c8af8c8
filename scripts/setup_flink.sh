#!/usr/bin/env bash
# Makes .venv-flink with the pinned Flink, for bench/spark only: it wants other versions of the libraries than this project does.
#   scripts/setup_flink.sh STAMP        PYTHON=... chooses the interpreter: 3.11 or 3.12
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
stamp=${1:-.venv-flink/.stamp}
venv=.venv-flink
version=2.3.0

die() { printf 'bench-peers: %s\n' "$@" >&2; exit 1; }

supported() { "$1" -c 'import sys, ensurepip, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' >/dev/null 2>&1; }

python=""
for candidate in ${PYTHON:-python3 python3.12 python3.11}; do
  if supported "$candidate"; then python=$candidate; break; fi
done
[ -n "$python" ] || die "Flink $version needs Python 3.11 or 3.12 with venv; none was found." "Name one: make bench-peers PYTHON=path/to/python3.11"
scripts/ensure_java.sh

echo "bench-peers: $venv from $("$python" -V), with Flink $version (some 850 MB; a few minutes)"
"$python" -m venv --clear "$venv"
"$venv/bin/python" -m pip --disable-pip-version-check --quiet install "apache-flink==$version" ||
  die "pip could not install apache-flink $version (see above); the benchmark leaves Flink out without it."
touch "$stamp"
echo "bench-peers: done"
