"""Arrays in a GPU's memory that mpi4py takes, without cupy.

    dryfly run --machine perlmutter-gpu --mpi openmpi -N 2 --ppn 4 -- docs/example/gpu_arrays.py

The memory is the runtime's own, CUDA's or HIP's, by ctypes. mpi4py sees it by `__cuda_array_interface__`, also of HIP's
memory, or by DLPack, where the kind of device is said.
"""

from __future__ import annotations

import array
import ctypes
from collections.abc import Iterable

from mpi4py import MPI

_COUNT = 100_000
_COPY_DEFAULT = 4  # cudaMemcpyDefault and hipMemcpyDefault: which memory is whose is the runtime's to find out
# By prefix of its functions: the library, and the kind of its devices in DLPack.
_RUNTIMES = {"cuda": ("libcudart.so.12", 2), "hip": ("libamdhip64.so.6", 10)}


class Runtime:
    """Of the machine's GPUs: whichever is there."""

    def __init__(self) -> None:
        for prefix, (library, kind) in _RUNTIMES.items():
            try:
                self._functions, self._prefix, self.kind = ctypes.CDLL(library), prefix, kind
            except OSError:
                continue
            return
        raise SystemExit("gpu_arrays: this machine has neither CUDA 12 nor HIP 6")

    def call(self, name: str, *arguments: object) -> None:
        status = getattr(self._functions, self._prefix + name)(*arguments)
        if status != 0:
            raise SystemExit(f"gpu_arrays: {self._prefix}{name} answers {status}")


class Doubles:
    """An array of doubles on the current device, for mpi4py by `__cuda_array_interface__`."""

    def __init__(self, runtime: Runtime, count: int) -> None:
        self.runtime, self.count = runtime, count
        self.address = ctypes.c_void_p()
        runtime.call("Malloc", ctypes.byref(self.address), ctypes.c_size_t(8 * count))

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return {"shape": (self.count,), "typestr": "<f8", "data": (self.address.value, False), "version": 3}

    def fill(self, values: Iterable[float]) -> None:
        host = array.array("d", values)
        self._copy(self.address, ctypes.c_void_p(host.buffer_info()[0]))

    def values(self) -> array.array[float]:
        host = array.array("d", bytes(8 * self.count))
        self._copy(ctypes.c_void_p(host.buffer_info()[0]), self.address)
        return host

    def free(self) -> None:
        self.runtime.call("Free", self.address)

    def _copy(self, target: ctypes.c_void_p, source: ctypes.c_void_p) -> None:
        self.runtime.call("Memcpy", target, source, ctypes.c_size_t(8 * self.count), _COPY_DEFAULT)


class _Tensor(ctypes.Structure):
    """DLManagedTensor of dlpack.h, whose first part is DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_kind", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("dimensions", ctypes.c_int32),
        ("type_code", ctypes.c_uint8),
        ("type_bits", ctypes.c_uint8),
        ("type_lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


_DL_FLOAT = 2
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Packed:
    """The same array, for mpi4py by DLPack. Without a deleter the memory stays the array's."""

    def __init__(self, doubles: Doubles, device: int) -> None:
        self._device = (doubles.runtime.kind, device)
        self._shape = (ctypes.c_int64 * 1)(doubles.count)
        self._tensor = _Tensor(doubles.address.value, *self._device, 1, _DL_FLOAT, 64, 1, self._shape)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(self, stream: object = None) -> object:
        return _new_capsule(ctypes.addressof(self._tensor), b"dltensor", None)


def main() -> None:
    world = MPI.COMM_WORLD
    rank, size = world.rank, world.size
    runtime = Runtime()
    devices = ctypes.c_int()
    runtime.call("GetDeviceCount", ctypes.byref(devices))
    device = world.Split_type(MPI.COMM_TYPE_SHARED).rank % devices.value
    runtime.call("SetDevice", device)
    mine, other = Doubles(runtime, _COUNT), Doubles(runtime, _COUNT)

    mine.fill(rank + index for index in range(_COUNT))
    world.Sendrecv(mine, (rank + 1) % size, 0, other, (rank - 1) % size, 0)
    assert other.values() == array.array("d", ((rank - 1) % size + index for index in range(_COUNT)))

    world.Allreduce(MPI.IN_PLACE, Packed(mine, device))
    ranks = size * (size - 1) // 2
    assert mine.values() == array.array("d", (ranks + size * index for index in range(_COUNT)))

    request = world.Isend(Packed(mine, device), (rank + 1) % size)
    world.Recv(Packed(other, device), (rank - 1) % size)
    request.Wait()
    assert other.values() == mine.values()

    mine.free()
    other.free()
    world.Barrier()
    if rank == 0:
        print("ok gpu_arrays")


if __name__ == "__main__":
    main()
