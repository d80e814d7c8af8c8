"""models: what may be known of a stream: the probability of each value some tuples ahead, given what has been seen.

`offline` (known), `stationary`, `trend`, `walk`, `ar1`, `season`; `identify` finds class and parameters from the
running stream."""
