// Bandwidth of windows of puts between rank 0 and the last rank in both directions at once; bytes of both count.
#include "one_sided.h"

int main(int argc, char** argv) { return measure_one_sided(argc, argv, put, 1, 1); }
