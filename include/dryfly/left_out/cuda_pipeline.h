#error cuda_pipeline.h cannot be compiled for this computer: copies beside a kernel's threads are not simulated
