"""`dryfly validate --native`: the same procedure, programs and report on a real cluster (docs/guide/validate.md)."""
