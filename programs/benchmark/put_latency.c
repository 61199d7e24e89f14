// Rank 0 puts to the last rank: the time of an operation with its synchronisation.
#include "one_sided.h"

int main(int argc, char** argv) { return measure_one_sided(argc, argv, put, 0, 0); }
