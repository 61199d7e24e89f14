#!/bin/sh
# The provider is loaded into other people's programs: it may need libc and nothing else, and may show only the
# symbol that libfabric looks for, and the one by which dryfly asks about settings.  usage: dynamic_section_test.sh libcxi-fi.so
set -eu
library=$1

needed=$(readelf -d -W "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
if [ "$needed" != libc.so.6 ]; then
  echo "$library needs: $needed"
  exit 1
fi
shown=$(readelf --dyn-syms -W "$library" | awk '$7 != "UND" && $8 != "" && $7 != "Ndx" && $5 != "LOCAL" { print $8 }')
shown=$(echo "$shown" | LC_ALL=C sort | tr '\n' ' ')
if [ "$shown" != "dryfly_refused_setting fi_prov_ini " ]; then
  echo "$library shows: $shown"
  exit 1
fi
foreign=$(readelf --dyn-syms -W "$library" |
  awk '$7 == "UND" && $5 == "GLOBAL" && $8 !~ /@GLIBC_/ { print $8 }')
if [ -n "$foreign" ]; then
  echo "$library wants: $foreign"
  exit 1
fi
