"""The engine: runs any plan over windows of tuples, in global order, at compiled speed.

    program/   a Plan as small tables of integers
    store/     where tuples lie: the arena, windows, inner states and their indexes
    kernel/    what happens to a tuple: it arrives, probes, is stored, leaves
    native/    marking, building, loading and calling compiled code
    rows/      Arrow rows on their way in, and results on their way out

`executor.Engine` drives it; `control` is how anything outside watches and changes it; `snapshot` carries it over; `metrics` counts;
`inspect` is a read-only view.
"""
