#!/bin/sh
# Compare pacmeta with JAX, PyTorch and GPyTorch on the Gaussian-process meta-iteration.
# Arguments are passed on to compare.py; `--peers-only` skips building pacmeta.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH= cd -- "$here/../.." && pwd)
environment="$root/benchmarks/.venv"

if [ ! -x "$environment/bin/python" ]; then
    # Made beside and moved into place, so that an interrupted installation is not taken for a whole one.
    rm -rf "$environment.partial"
    python3 -m venv "$environment.partial"
    "$environment.partial/bin/python" -m pip install --quiet --requirement "$root/benchmarks/requirements.txt"
    mv "$environment.partial" "$environment"
fi

case " $* " in
*" --peers-only "*) ;;
*)
    (cd "$root" && cargo build --release --package pacmeta-cli)
    set -- --pacmeta "${CARGO_TARGET_DIR:-$root/target}/release/pacmeta" "$@"
    ;;
esac
exec "$environment/bin/python" "$here/compare.py" "$@"
