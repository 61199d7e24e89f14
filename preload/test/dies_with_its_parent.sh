#!/bin/sh
# dies_with_its_parent.sh PROGRAM FOLDER PRELOAD: starts PROGRAM as a rank behind a wrapper, kills the wrapper, and
# expects the program to be gone within two seconds.
set -u
sh -c '
  LD_PRELOAD="$3" DRYFLY_CHANNEL=test DRYFLY_RANK=0 "$1" &
  echo $! >"$2/pauser.pid"
  sleep 0.3
  kill -9 $$' wrapper "$1" "$2" "$3"
pid=$(cat "$2/pauser.pid")
for _ in 1 2 3 4 5 6 7 8 9 10; do
  # Gone, or dead and waiting for somebody to ask for its exit status.
  state=$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null | cut -c1)
  if [ -z "$state" ] || [ "$state" = Z ]; then exit 0; fi
  sleep 0.2
done
kill -9 "$pid"
echo "rank $pid outlived its parent"
exit 1
