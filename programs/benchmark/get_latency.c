// Rank 0 gets from the last rank: the time of an operation with its synchronisation.
#include "one_sided.h"

int main(int argc, char** argv) { return measure_one_sided(argc, argv, get, 0, 0); }
