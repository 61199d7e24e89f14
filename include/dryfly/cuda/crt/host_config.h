/* Looked for by NVIDIA's cuda_runtime.h; PyPI's package of the runtime is without it. Nothing is to be said here. */
