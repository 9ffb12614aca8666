#!/bin/bash
# Renames identifiers, files, MARKs and comment phrases over the tree in the current directory (a clone of Hearth).
# usage: cd CLONE && Tools/rename/rename.sh [--check]
# Tolerant (what does not exist is skipped), idempotent. String literals are left alone, except interpolations in them.
# --check changes nothing: it prints clashes (a new name that exists already where the old one is used).
set -eu
[ -f Package.swift ] || { echo "run it in the root of a clone" >&2; exit 1; }
exec python3 "$(dirname "$0")/rename.py" "$@"
