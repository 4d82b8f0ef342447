#!/usr/bin/env bash
# Runs a command in the virtual environment of the project, and creates the environment first.
#
#   tools/run.sh [--no-jvm] COMMAND [ARGUMENT...]
#
# Set-up runs once: it creates a virtual environment of a Python >= 3.10 with an editable install of the package, and
# finds a JDK >= 17 (not with --no-jvm). A stamp in the environment has a hash of its requirements, so later runs start
# immediately, and changed requirements create the environment again.
#
#   PYTHON       the Python to use instead of the first suitable one
#   VENV         the directory of the environment (.venv)
#   CONSTRAINTS  a pip constraints file
#   EXTRAS       the extras of setup.cfg to install (test,demo)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=${VENV:-$root/.venv}
extras=${EXTRAS:-test,demo}
[[ $venv == /* ]] || venv=$root/$venv

say() { printf 'set-up: %s\n' "$*" >&2; }
die() { printf 'set-up: %s\n' "$@" >&2; exit 2; }

as_root_on_debian() { [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null 2>&1; }

apt_install() {
    say "apt-get install $*"
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 && return
    apt-get update -qq >&2 && apt-get install -y -qq --no-install-recommends "$@" >&2
}

# A suitable Python starts (a shim of a version manager may not), is new enough, and can create environments.
fits() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1
}
can_make_environments() {
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1
}

find_python() {
    local name candidate lacking=
    # The newest PySpark needs Python 3.11; with 3.10 pip installs the newest that supports it.
    for name in ${PYTHON:-python3.12 python3.11 python3.13 python3.14 python3.10 python3}; do
        while read -r candidate; do
            fits "$candidate" || continue
            if can_make_environments "$candidate"; then echo "$candidate"; return; fi
            lacking=${lacking:-$candidate}
        done < <(type -aP "$name" 2>/dev/null)
    done
    [[ -n $lacking ]] || die "No Python >= 3.10 is found${PYTHON:+ as $PYTHON}." \
        "Install one, for example on Debian or Ubuntu: apt-get install python3 python3-venv"
    if as_root_on_debian; then
        apt_install "python$("$lacking" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv" >&2 || true
        if can_make_environments "$lacking"; then echo "$lacking"; return; fi
    fi
    die "$lacking cannot create virtual environments (no venv or ensurepip)." \
        "Install them, for example on Debian or Ubuntu: apt-get install python3-venv"
}

fingerprint() {
    {
        # Only the parts that decide what is installed: metadata and options, not the settings of tools.
        awk '/^\[/ { on = /^\[(metadata|options)/ } on' "$root/setup.cfg"
        sed -n '/^\[build-system\]/,/^\[tool/p' "$root/pyproject.toml"
        [[ -z ${CONSTRAINTS:-} ]] || cat "$root/$CONSTRAINTS"
        echo "$root $extras ${PYTHON:-}"
    } | cksum | tr ' ' '-'
}

make_environment() {
    local stamp
    stamp="$venv/.lakelsm-$(fingerprint)"
    [[ ! -e $stamp ]] || return 0
    # Under a lock: `make -j` runs this script several times concurrently.
    (
        ! command -v flock >/dev/null 2>&1 || flock 9
        [[ -e $stamp ]] || install_into_environment
        touch "$stamp"
    ) 9<"$root/setup.cfg"
}

install_into_environment() {
    local python
    python=$(find_python)
    say "$("$python" -V) ($python) -> $venv"
    "$python" -m venv --clear "$venv"
    say "installing lakelsm[$extras]; this takes some minutes"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        ${CONSTRAINTS:+--constraint "$root/$CONSTRAINTS"} --editable "$root[$extras]" >&2
}

java_version() {
    # "17.0.2" -> 17, "1.8.0_392" -> 1, "21-ea" -> 21; nothing if it does not run
    "$1" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1
}

# Prints the home of the first JDK >= 17: of JAVA_HOME, the PATH, then the usual directories.
find_java_home() {
    local java version
    for java in ${JAVA_HOME:+"$JAVA_HOME/bin/java"} "$(type -P java || true)" \
        /usr/lib/jvm/*/bin/java /opt/homebrew/opt/openjdk*/bin/java \
        /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java; do
        [[ -x $java ]] || continue
        version=$(java_version "$java")
        [[ -n $version && $version -ge 17 ]] || continue
        java=$(readlink -f "$java")
        echo "${java%/bin/java}"
        return
    done
    return 1
}

need_java() {
    JAVA_HOME=$(find_java_home) && export JAVA_HOME && return
    if as_root_on_debian; then
        apt_install openjdk-17-jre-headless || apt_install default-jre-headless || true
        JAVA_HOME=$(find_java_home) && export JAVA_HOME && return
    fi
    die "Spark needs a Java runtime >= 17, and none is found (JAVA_HOME, PATH, /usr/lib/jvm)." \
        "Debian or Ubuntu: sudo apt-get install openjdk-17-jre-headless" \
        "Fedora:           sudo dnf install java-17-openjdk-headless" \
        "macOS:            brew install openjdk@17" \
        "Then run the command again; set JAVA_HOME if the runtime is not on the PATH."
}

jvm=yes
if [[ ${1:-} == --no-jvm ]]; then jvm=no; shift; fi
[[ $# -gt 0 ]] || die "usage: tools/run.sh [--no-jvm] COMMAND [ARGUMENT...]"

make_environment
[[ $jvm == no ]] || need_java

# Without these variables Spark would run the `python3` of the PATH as workers, and the jars of another SPARK_HOME. With
# PYTHONDONTWRITEBYTECODE each worker would compile the whole package: half a second of CPU.
export PATH="$venv/bin:$PATH" VIRTUAL_ENV="$venv" PYSPARK_PYTHON="$venv/bin/python" PYSPARK_DRIVER_PYTHON="$venv/bin/python"
unset SPARK_HOME PYTHONHOME PYTHONDONTWRITEBYTECODE
cd "$root"
exec "$@"
