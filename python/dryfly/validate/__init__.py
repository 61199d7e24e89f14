"""Fabric validation: from a node's own parts to the whole system, level by level (docs/guide/validate.md)."""

LEVELS = ("node", "switch", "group", "pair", "system")
NETWORKS = ("links", "flow", "packet")  # what the network of a simulated machine is; ranks of a program have no links
LAUNCHERS = ("hydra", "prterun", "srun", "pals", "flux")  # of real clusters
