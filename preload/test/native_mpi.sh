#!/bin/sh
# native_mpi.sh MPICC MPIEXEC PRELOAD SOURCE FOLDER: runs the program on two ranks with and without the preload and
# compares what it prints.
set -eu
program="$5/native_mpi"
"$1" -o "$program" "$4"
plain=$("$2" -n 2 "$program")
loaded=$("$2" -n 2 env LD_PRELOAD="$3" "$program")
echo "$plain"
echo "$loaded"
test "$plain" = "sum 3 of 2, left 1, slept 1"
test "$loaded" = "$plain"
