#!/bin/sh
# Builds the conformance programs against an MPI prefix and its libfabric, and runs them under dryfly.
#   usage: run.sh MPI_PREFIX FOLDER_FOR_PROGRAMS DRYFLY...       (DRYFLY: the dryfly command, say "python3 -m dryfly")
set -eu
prefix=$1
folder=$2
shift 2
here=$(dirname "$0")
for program in messages memory fences waits write_data triggered; do
  "$prefix/bin/mpicc" -std=c11 -D_GNU_SOURCE -O1 -Wall -Wextra -o "$folder/conformance-$program" "$here/$program.c" \
    "$prefix/lib/mpich/libfabric.so.1" -Wl,-rpath,"$prefix/lib/mpich"
  "$@" run --quiet -n 2 --compute none -- "$folder/conformance-$program"
done
"$prefix/bin/mpicc" -std=c11 -D_GNU_SOURCE -O1 -Wall -Wextra -o "$folder/conformance-collectives" "$here/collectives.c" \
  "$prefix/lib/mpich/libfabric.so.1" -Wl,-rpath,"$prefix/lib/mpich" -lm
"$@" run --quiet -n 9 --compute none -- "$folder/conformance-collectives"
