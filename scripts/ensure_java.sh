#!/usr/bin/env bash
# Spark needs Java 17 or later. Checks for it; where it is missing and apt may be used, installs a headless JRE;
# otherwise says what to do and exits with 1.
set -euo pipefail
need=17

# Like Spark: JAVA_HOME first, then PATH.
java_command() { if [ -n "${JAVA_HOME:-}" ]; then echo "$JAVA_HOME/bin/java"; else command -v java || true; fi; }

java_major() { # 17 for 17.0.15, 8 for 1.8.0_392, 0 for none
  local java version
  java=$(java_command)
  version=$({ [ -n "$java" ] && "$java" -version 2>&1; } | sed -nE 's/.*version "(1\.)?([0-9]+).*/\2/p' | head -n 1) || true
  echo "${version:-0}"
}

good() { [ "$(java_major)" -ge "$need" ]; }

give_up() {
  local found
  found=$(java_major)
  {
    if [ "$found" = 0 ]; then echo "java: Spark needs Java $need or later; none was found${JAVA_HOME:+ in JAVA_HOME=$JAVA_HOME}."
    else echo "java: Spark needs Java $need or later; $(java_command) is Java $found."; fi
    printf 'java: %s\n' "$@"
    echo "java: All that needs no Spark works without it: watersmeet run and explain, make lint, make types,"
    echo "java: and the core's tests: .venv/bin/pytest -m 'not spark'"
  } >&2
  exit 1
}

good && exit 0

[ -z "${JAVA_HOME:-}" ] || give_up "Unset JAVA_HOME, or point it at a Java $need or later, and run make setup again."
by_hand="Install a JRE $need or later (Debian, Ubuntu: apt-get install default-jre-headless; Fedora: dnf install \
java-latest-openjdk-headless; macOS: brew install openjdk), and run make setup again."
command -v apt-get >/dev/null 2>&1 || give_up "$by_hand"

if [ "$(id -u)" = 0 ]; then as_root=(env)
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then as_root=(sudo -n env)
else give_up "apt is here, but neither root nor sudo without a password." "$by_hand"; fi
# Two makes at once: the second waits, then finds Java there.
if command -v flock >/dev/null 2>&1; then
  exec 9<"${BASH_SOURCE[0]}"
  flock 9
  hash -r
  if good; then exit 0; fi
fi
apt=("${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)

echo "java: no Java $need or later: installing a headless JRE with apt"
"${apt[@]}" update || echo "java: apt-get update failed; trying with the package lists that are here" >&2
for package in openjdk-17-jre-headless openjdk-21-jre-headless openjdk-25-jre-headless default-jre-headless; do
  apt-cache show "$package" >/dev/null 2>&1 || continue
  "${apt[@]}" install --yes --no-install-recommends "$package" >/dev/null || continue
  hash -r
  good || give_up "$package is installed, but another Java comes first: run update-alternatives --config java, or set JAVA_HOME."
  echo "java: $package installed"
  exit 0
done
give_up "apt could not install one." "$by_hand"
