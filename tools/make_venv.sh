#!/bin/sh
# Makes .venv with a Python of 3.11 or later; on Debian, installs the venv module if it is missing and we may.
set -eu
[ -n "${PYTHON:-}" ] || { echo "peer-rl: no python3 found; install Python 3.11 (Debian: apt-get install python3 python3-venv)" >&2; exit 2; }
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "peer-rl: $PYTHON is older than Python 3.11; install 3.11 and run: make PYTHON=/path/to/python3.11" >&2; exit 2; }
[ -x .venv/bin/pip ] && exit 0
if ! "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && apt-get install -y -qq python3-venv
    else
        echo "peer-rl: Python's venv module is missing; run: sudo apt-get install python3-venv" >&2; exit 2
    fi
fi
echo "setting up .venv (a minute or two, once) ..."
"$PYTHON" -m venv .venv
