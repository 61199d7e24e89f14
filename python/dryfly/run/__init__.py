"""Starting and watching the processes of a run, or of a fabric that stays up."""
