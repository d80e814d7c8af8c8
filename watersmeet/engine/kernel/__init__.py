"""The kernel: the compiled loop that takes rows in global order, keeps the stores and runs the pipelines."""
