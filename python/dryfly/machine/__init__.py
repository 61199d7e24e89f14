"""Machines: their files, names, topology and the declared schema of what they hold."""
