"""Programs that dryfly knows: its solvers and microbenchmarks."""
