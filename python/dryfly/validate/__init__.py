"""Fabric validation: from a node's own parts to the whole system, level by level (docs/guide/validate.md)."""
