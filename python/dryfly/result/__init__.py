"""What a run leaves: its result, tables, traces and the summary."""
