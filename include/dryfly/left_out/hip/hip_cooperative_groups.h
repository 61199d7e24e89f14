#error hip/hip_cooperative_groups.h cannot be compiled for this computer: cooperative groups are not simulated
