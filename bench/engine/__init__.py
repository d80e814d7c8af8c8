"""The engine alone, in process, on one core: against a hand-written loop (the limit) and DuckDB (what a user might try instead)."""
