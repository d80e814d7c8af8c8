"""The bridge to Spark: sources are routed and packed, joined in cells, and come out as an ordinary streaming DataFrame.

    source DataFrame -> selection (selection.py) -> route and pack (route.py, pack.py) -> shuffle by cell -> cell (cell.py) -> results

`stream.py` puts it together. The cell itself knows no Spark: `processor.py` connects it to Spark's state store.
"""
