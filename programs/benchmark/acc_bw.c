// Bandwidth of windows of accumulates from rank 0 to the last rank.
#include "one_sided.h"

int main(int argc, char** argv) { return measure_one_sided(argc, argv, accumulate, 1, 0); }
