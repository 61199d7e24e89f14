"""MPI libraries: which are installed, what a program needs, how each is started and set."""
