"""What is run, resolved before anything starts."""
