#!/bin/sh
# The provider is loaded into other people's programs: it may need libc and nothing else, and may show only the
# symbols that are looked for.  usage: dynamic_section_test.sh LIBRARY NEEDED "SYMBOL ..."
set -eu
library=$1

needed=$(readelf -d -W "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | xargs)
if [ "$needed" != "$2" ]; then
  echo "$library needs: $needed"
  exit 1
fi
shown=$(readelf --dyn-syms -W "$library" |
  awk '$7 != "UND" && $8 != "" && $7 != "Ndx" && $5 != "LOCAL" { print $8 }' | sort | xargs)
if [ "$shown" != "$3" ]; then
  echo "$library shows: $shown"
  exit 1
fi
foreign=$(readelf --dyn-syms -W "$library" |
  awk '$7 == "UND" && $5 == "GLOBAL" && $8 !~ /@GLIBC_|^dryfly_/ { print $8 }')
if [ -n "$foreign" ]; then
  echo "$library wants: $foreign"
  exit 1
fi
