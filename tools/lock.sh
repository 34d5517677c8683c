#!/bin/sh
# Resolves requirements/*.txt from pyproject.toml: every version of Python we support, hashes, no index host.
#
# One constraint file after the other, so that a package has one version in all locks. `--no-config` and the
# cleared environment keep an index or a wheel folder of the machine at hand out of the result.
set -eu
cd "$(dirname "$0")/.."
command -v uv >/dev/null || { echo "make locks needs uv: https://docs.astral.sh/uv/" >&2; exit 1; }
unset UV_FIND_LINKS UV_INDEX UV_EXTRA_INDEX_URL PIP_FIND_LINKS PIP_EXTRA_INDEX_URL PIP_CONSTRAINT 2>/dev/null || true

lock() {
    output=$1
    shift
    uv pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes --only-binary :all: \
        --no-emit-index-url --no-emit-find-links --no-header --no-annotate "$@" --output-file "requirements/$output"
}

lock run.txt pyproject.toml --extra render --extra voice
lock build.txt --group build --constraint requirements/run.txt
lock test.txt --group test --constraint requirements/run.txt
lock check.txt --group check --constraint requirements/run.txt --constraint requirements/test.txt
