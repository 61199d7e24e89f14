"""Published measurements beside what dryfly gives."""
