#error cuda_bf16.h cannot be compiled for this computer: numbers of 16 bits are not there
