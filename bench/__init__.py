"""Benchmarks: speed as ratios against a peer or a limit, measured in one run."""
