"""`dryfly predict`: what a workload would do on a whole machine, by skeletons of its ranks or by a closed form."""
