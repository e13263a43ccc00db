#!/usr/bin/env bash
# Runs the Python packages `openai` and `mcp`, unmodified, against this product and its sandbox. Where there is no Python, or the package
# index cannot be reached, it says so in one line and is content.
set -euo pipefail
cd "$(dirname "$0")"

skip() { echo "skipped: $1"; exit 0; }

command -v python3 >/dev/null || skip 'there is no python3'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1
if ! "$work/venv/bin/pip" install --quiet --retries 2 --timeout 20 --requirement requirements.txt >"$work/pip.log" 2>&1; then
  if grep -qE 'NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError|Network is unreachable' "$work/pip.log"; then
    skip 'the Python package index cannot be reached'
  fi
  cat "$work/pip.log"
  exit 1
fi
"$work/venv/bin/python" -m unittest -v test_openai test_mcp
