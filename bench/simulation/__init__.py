"""A synthetic fleet as real bundles: each run's truth is known, so that a harvest's verdicts can be checked."""
