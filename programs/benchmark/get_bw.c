// Bandwidth of windows of gets by rank 0 from the last rank.
#include "one_sided.h"

int main(int argc, char** argv) { return measure_one_sided(argc, argv, get, 1, 0); }
