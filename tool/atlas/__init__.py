"""The atlas of applications: what tool/applications.py installs, runs and writes docs/applications.md from."""
