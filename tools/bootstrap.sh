#!/bin/sh
# Makes .venv and installs the locked packages into it: `tools/bootstrap.sh run`, or `run test`, `run test check`.
#
# A POSIX shell script, because it must say what is missing on a machine that has no Python, or only an old one.
# It does nothing when the locks have not changed. LONGTAKE_PYTHON names the interpreter to use.
set -eu
cd "$(dirname "$0")/.."
unset PYTHONPATH PYTHONHOME PIP_USER PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV 2>/dev/null || true
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

venv=.venv
newest_known=14

say() { printf '%s\n' "$*" >&2; }
die() { say ""; say "longtake: $1"; shift; for line in "$@"; do say "  $line"; done; exit 1; }

version_of() { "$1" -c 'import sys; sys.stdout.write("%d.%d" % sys.version_info[:2])' </dev/null 2>/dev/null; }

good_version() {
    major=${1%%.*} minor=${1#*.}
    [ "$major" = 3 ] && [ "$minor" -ge 11 ] && [ "$minor" -le "$newest_known" ]
}

has_venv() { "$1" -c 'import venv, ensurepip' </dev/null >/dev/null 2>&1; }

candidates() {
    if [ -n "${LONGTAKE_PYTHON:-}" ]; then echo "$LONGTAKE_PYTHON"; return; fi
    minor=$newest_known
    while [ "$minor" -ge 11 ]; do echo "python3.$minor"; minor=$((minor - 1)); done
    echo python3
    echo python
}

find_python() {
    python="" without_venv="" unsuitable=""
    # One name a line, so that LONGTAKE_PYTHON may hold a space.
    IFS='
'
    for candidate in $(candidates); do
        version=$(version_of "$candidate") || continue
        [ -n "$version" ] || continue
        if ! good_version "$version"; then
            unsuitable="$unsuitable $candidate is $version;"
        elif has_venv "$candidate"; then
            python=$candidate
            unset IFS
            return 0
        elif [ -z "$without_venv" ]; then
            without_venv=$version
        fi
    done
    unset IFS
    if [ -n "$without_venv" ]; then
        die "Python $without_venv is here, but without venv and ensurepip, which make its environment." \
            "Debian, Ubuntu:  apt-get install -y python3-venv     (or python$without_venv-venv)" \
            "then run the same command again."
    fi
    die "Python 3.11 to 3.$newest_known is needed.${unsuitable:+ Found:${unsuitable%;}.}" \
        "Debian 12 or newer, Ubuntu 24.04 or newer:  apt-get install -y python3 python3-venv" \
        "or name another interpreter:  LONGTAKE_PYTHON=/path/to/python3.12 make demo"
}

check_libc() {
    [ "$(uname -s)" = Linux ] || return 0
    libc=$("$1" -c 'import platform; name, version = platform.libc_ver(); print(name or "other", version or "0.0")' 2>/dev/null) || return 0
    name=${libc%% *} version=${libc#* }
    if [ "$name" != glibc ]; then
        die "this system has no glibc (musl, as in Alpine?); the packaged Postgres needs glibc 2.28 or newer." \
            "Use a Debian, Ubuntu or Fedora system or image."
    fi
    if [ "${version%%.*}" -eq 2 ] && [ "$(echo "${version#*.}" | cut -d. -f1)" -lt 28 ]; then
        die "glibc $version is too old; the packaged Postgres needs 2.28 or newer." "Use Debian 10, Ubuntu 20.04 or newer."
    fi
}

make_venv() {
    if [ -x "$venv/bin/python" ]; then
        version=$(version_of "$venv/bin/python" || true)
        # A moved or copied clone has scripts that point to the old place; such a venv is made again.
        here=$("$venv/bin/python" -c 'import os, sys; print(os.path.realpath(sys.prefix))' 2>/dev/null || true)
        if [ -n "$version" ] && good_version "$version" && [ "$here" = "$(pwd -P)/$venv" ]; then
            "$venv/bin/python" -m pip --version >/dev/null 2>&1 && return 0
            "$venv/bin/python" -m ensurepip >/dev/null 2>&1 && return 0
        fi
        say "longtake: $venv cannot be used (moved, or its Python is gone): making it again"
        rm -rf "$venv"
    fi
    find_python
    check_libc "$python"
    say "longtake: making $venv with $python ($(version_of "$python"))"
    "$python" -m venv "$venv" || die "$python could not make $venv." "Debian, Ubuntu:  apt-get install -y python3-venv"
}

# The sum of all that decides what is installed; the stamp of a group holds it after a good installation.
wanted() { cat "$@" | cksum; }

install_locked() {
    group=$1 stamp="$venv/longtake-$1.stamp"
    shift
    [ "$(cat "$stamp" 2>/dev/null || true)" = "$(wanted "$@")" ] && return 0
    say "longtake: installing the locked packages for '$group' (once; needs the network)"
    files=""
    for file in "$@"; do files="$files -r $file"; done
    # shellcheck disable=SC2086 -- the names of the locks hold no space
    "$venv/bin/python" -m pip install --quiet --require-hashes --only-binary :all: $files ||
        die "the packages could not be installed; the lines above say which." \
            "No network, or a proxy: set HTTPS_PROXY, or pip's own index settings, and run the same command again." \
            "Little disk: about 700 MB are needed."
    wanted "$@" >"$stamp"
}

install_project() {
    stamp="$venv/longtake-project.stamp"
    [ -x "$venv/bin/longtake" ] && [ "$(cat "$stamp" 2>/dev/null || true)" = "$(wanted pyproject.toml)" ] && return 0
    "$venv/bin/python" -m pip install --quiet --no-deps --no-build-isolation --editable . ||
        die "longtake itself could not be installed; the lines above say why."
    wanted pyproject.toml >"$stamp"
}

make_venv
for group in "${@:-run}"; do
    case $group in
        run) install_locked run requirements/run.txt requirements/build.txt ;;
        test | check) install_locked "$group" "requirements/$group.txt" ;;
        *) die "there is no group '$group'." "Groups: run test check" ;;
    esac
done
install_project
