#!/bin/sh
# Builds an MPICH that knows of CUDA, from Debian's source package, with `dryfly nvcc` for its kernels, and adds it as
# mpich-cuda: then `dryfly run --machine perlmutter-gpu --mpi mpich-cuda`. `make mpich-cuda` calls it.
#
#   tool/mpich_gpu.sh [FOLDER]    default: $XDG_CACHE_HOME/dryfly/build-mpich-cuda, or that in ~/.cache
#
# It takes about 20 minutes of a processor, and what is built stays where it is. It needs a C and C++ compiler,
# libfabric's headers and libtool (libfabric-dev, libtool-bin, dpkg-dev), network for the source, and no root: the
# system's own package lists stay as they are.
set -eu
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/dryfly/build-mpich-cuda}
jobs=$(nproc)
for tool in dryfly libtool dpkg-source apt-get make gcc g++; do
  command -v $tool >/dev/null || { echo "mpich_gpu.sh: $tool is not on PATH" >&2; exit 2; }
done
[ -f /usr/include/rdma/fabric.h ] || { echo "mpich_gpu.sh: there is no /usr/include/rdma/fabric.h (libfabric-dev)" >&2; exit 2; }

mkdir -p "$folder/apt/state/lists/partial" "$folder/apt/cache/archives/partial"
cd "$folder"
if [ ! -d source ]; then
  echo "== the source, Debian's mpich of bookworm"
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main" >apt/list
  cat >apt/apt.conf <<EOF
Dir::State "$folder/apt/state";
Dir::Cache "$folder/apt/cache";
Dir::Etc::sourcelist "$folder/apt/list";
Dir::Etc::sourceparts "-";
EOF
  APT_CONFIG=$folder/apt/apt.conf apt-get -qq update
  APT_CONFIG=$folder/apt/apt.conf apt-get -qq source --download-only mpich
  dpkg-source -x mpich_*.dsc unpacked >/dev/null
  mv unpacked source
fi
rm -rf toolkit build prefix
dryfly nvcc --toolkit "$folder/toolkit"
mkdir build
cd build
echo "== configure and make, with $jobs at a time: configure.log and make.log of $folder"
# Which GPU it is for is asked for and makes no difference: kernels are compiled for this computer.
../source/configure --prefix="$folder/prefix" --with-device=ch4:ofi --with-libfabric=/usr \
  --with-cuda="$folder/toolkit" --with-cuda-sm=80 --disable-fortran --disable-cxx --disable-romio --disable-static \
  --enable-fast=O1,ndebug >"$folder/configure.log" 2>&1
# Debian's libfabric.pc names what a static one would need.
sed -i -E 's/-l(psm_infinipath|psm2|rdmacm|ibverbs|efa)\b//g' Makefile
{ make -j "$jobs" && make install; } >"$folder/make.log" 2>&1
dryfly mpi add mpich-cuda="$folder/prefix"
