"""policies: one a module, found by its name; `POLICY` makes it."""
