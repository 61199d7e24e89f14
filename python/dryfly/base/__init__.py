"""What every part may use: errors, units, files, signals."""
