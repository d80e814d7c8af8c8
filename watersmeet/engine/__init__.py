"""The engine: executes any plan over windows of tuples, one tuple at a time in global order, at compiled speed."""
