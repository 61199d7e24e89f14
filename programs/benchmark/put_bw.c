// Bandwidth of windows of puts from rank 0 to the last rank.
#include "one_sided.h"

int main(int argc, char** argv) { return measure_one_sided(argc, argv, put, 1, 0); }
