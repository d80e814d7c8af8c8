"""retain: which tuples to keep when join state must fit in k tuples.

    models ─ forecast ─▶ benefit (H, a table) ─ lookup ─▶ policies ─ scores ─▶ simulate, victims
    ecb: what can be proved       lifetime: L       incremental: H step by step       bounds: who knows the future

Pure: it decides and never touches engine state.
"""
