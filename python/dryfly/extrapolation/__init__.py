"""From recordings at several sizes to a skeleton at any size: docs/guide/extrapolation.md."""
