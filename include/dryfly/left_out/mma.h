#error mma.h cannot be compiled for this computer: matrix units are not simulated
