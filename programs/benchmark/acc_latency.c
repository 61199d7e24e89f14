// Rank 0 adds to the last rank's numbers: the time of an operation with its synchronisation.
#include "one_sided.h"

int main(int argc, char** argv) { return measure_one_sided(argc, argv, accumulate, 0, 0); }
