"""Spack's recipe of dryfly, built from a clone of its sources (packaging/README.md)."""

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyDryfly(PythonPackage):
    """Runs unmodified MPI programs over a simulated HPE Slingshot dragonfly, in virtual time."""

    license("Apache-2.0")

    # No release has an archive yet: spack install py-dryfly@=0.2.0 dev_path=CLONE.
    version("0.2.0")

    variant("record", default=False, description="Recordings of runs, reports and their pictures")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja@1.10:", type="build")
    depends_on("libfabric@1.17:", type="build")  # its headers; a run uses the libfabric of the program's MPI
    depends_on("py-scikit-build-core@0.11:", type="build")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-click@8.1:", type=("build", "run"))
    depends_on("py-pyelftools@0.29:", type=("build", "run"))
    depends_on("py-rich@13:", type=("build", "run"))
    depends_on("py-pyarrow@14:", type="run", when="+record")
    depends_on("py-matplotlib@3.8:", type="run", when="+record")

    conflicts("%gcc@:10")
    conflicts("platform=darwin", msg="dryfly needs Linux: futexes, process_vm_readv and /dev/shm")
    conflicts("platform=windows", msg="dryfly needs Linux: futexes, process_vm_readv and /dev/shm")
