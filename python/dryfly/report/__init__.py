"""Pages and pictures of recorded runs."""
