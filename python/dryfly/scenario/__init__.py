"""What happens around a run: faults, and storage traffic beside it."""
