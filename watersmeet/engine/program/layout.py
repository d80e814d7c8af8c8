"""Where things lie: the columns of the tables of integers that make up a Program and its state.

All state lives in one arena of 64-bit words, seen as int64 (`words`) and as int32 (`halves`). A *store* is a window of a stream or the
state of an inner tree node; an *index* finds tuples of a store; an *op* is a step of a pipeline.

A store is an array of records, one a slot, with all that a probe looks at side by side, so that a match costs one cache line:

    window   POOL: row number, free link      | columns ... | links of indexes (int32) ...
    state    ids of member tuples (int32) ... | columns ... | links of indexes (int32) ...
    cache    meta, key ..., references        | see store/cache.py

Behind the records lie a window's timestamps, which probes hardly ever look at, and the bucket heads of its hash indexes. Columns are
named by their word in the record, links by their half word.

Ids: a tuple in a store has a 32-bit local id. In a RING (first in, first out) ids count up and the slot is `id & MASK`; all ids below
FLOOR are gone, so expiry costs nothing and hash chains, which run from newest to oldest, are simply cut off there. In a
POOL (tuples leave in any order) and a STATE (swept now and then) the id is the slot.
"""

from typing import Final

# kinds of store
RING: Final = 0
POOL: Final = 1
STATE: Final = 2
CACHE: Final = 3

# kinds of window
RANGE: Final = 0
ROWS: Final = 1
PARTITION: Final = 2
UNBOUNDED: Final = 3

# columns of the table of stores
KIND: Final = 0
CAP: Final = 1  # slots; a power of two in a RING
MASK: Final = 2  # slot of an id: id & MASK
FLOOR: Final = 3  # lowest id that is live (RING)
NEXT: Final = 4  # next id (RING), slots ever used (POOL, STATE)
ROWS_AT: Final = 5  # record of a slot: ROWS_AT + slot * STRIDE
STRIDE: Final = 6  # words of a record
COL0: Final = 7  # word of the first column
WINDOW: Final = 8
SIZE: Final = 9  # microseconds (RANGE) or rows
FREE: Final = 10  # first free slot (POOL), chained through FREE_LINK; -1: none
ROWBASE: Final = 11  # row number of id 0 (RING)
NCOLS: Final = 12
INDEX_FROM: Final = 13
INDEX_TO: Final = 14
WORDS: Final = 15  # words of the store in the arena, from ROWS_AT on
LEAF_FROM: Final = 16  # leaves of a STATE: members[LEAF_FROM:LEAF_TO]
LEAF_TO: Final = 17
SOURCE_FROM: Final = 18  # where a STATE's columns come from: sources[SOURCE_FROM:], one row (leaf, word) each
EXPIRES: Final = 19  # the first live tuple leaves when time passes this (RANGE)
PART_AT: Final = (
    20  # partition directory: 4 words an entry: key, check, oldest (high half) and newest (low half) id + 1, tuples + 1
)
PART_MASK: Final = 21
PART_USED: Final = 22
LIVE: Final = 23  # tuples in the window (POOL), entries after the last sweep (STATE)
DEAD_LIST: Final = 24  # slots that have left but may still be referred to by a STATE (POOL), chained through FREE_LINK
INSERTS: Final = 25
EXPIRIES: Final = 26
PIPE: Final = 27  # first op of the pipeline that an arriving tuple runs; -1: none
DEAD_COUNT: Final = 28
LEAVE_PIPE: Final = 29  # first op of the pipeline that a leaving tuple runs (DSTREAM, CHANGES); -1: none
EAGER: Final = 30  # whether a leaving tuple must be taken out of an index
HELD: Final = 31  # whether states refer to tuples of this window
TIMES_AT: Final = 32  # timestamp of a slot of a window: TIMES_AT + slot; DEAD if it does not join
REACHED: Final = 33  # op that the rows of the group under way have come to in the pipeline of this stream; -1: none
BLOCKS_AT: Final = 34  # of a CACHE: first word of its blocks,
BLOCKS: Final = 35  # how many there are,
BLOCKS_OUT: Final = 36  # how many have ever been handed out,
BLOCKS_USED: Final = 37  # and how many are part of a value
ENTRIES: Final = 38  # keys that it has
HAND: Final = 39  # set whose entries make room next
CREATED: Final = 40  # entries made,
REPLACED: Final = 41  # those that another key took the place of,
CROWDED: Final = 42  # those given up because their values, or those of others, found no room,
UNCACHED: Final = 43  # and values that were not kept at all, too long or without room
FREE_BLOCKS: Final = 44  # for each class of extents: first free block + 1, chained through their first words; 0: none
CACHE_CLASSES: Final = 8  # of extents: 1, 2, 4, ... blocks
SECRET: Final = (
    FREE_BLOCKS + CACHE_CLASSES + 1
)  # two words, the same in all stores: the key of hashes of values (store/secret.py)
STORE_WIDTH: Final = SECRET + 2

# caches
CACHE_BLOCK: Final = 8  # words of a block
CACHE_LONGEST: Final = 2 * CACHE_BLOCK << CACHE_CLASSES - 1  # half words of the longest value

# places in a record
ROWNUM: Final = 0  # word: its row number (POOL)
FREE_LINK: Final = 2  # half word: next free slot, or next newer tuple of its partition (POOL)

# columns of the table of indexes
ORDERED: Final = 0  # 0: hash chains; 1: ordered tree
NKEYS: Final = 1
KEY0: Final = 2  # words of up to MAX_KEYS columns
HEADS_AT: Final = 6  # int32 a bucket: newest id of its chain, -1: none
SHIFT: Final = 7  # 64 - log2(buckets)
BUCKETS: Final = 8  # number of buckets - 1
LINK: Final = 9  # half word: next older id in the chain (hash), left child (tree)
BACK: Final = 10  # half word: next newer id in the chain (POOL), right child (tree)
PARENT: Final = 11  # half word: parent (tree)
ROOT: Final = 12
OF_STORE: Final = 13
DOUBLY: Final = 14  # whether BACK is kept
MAX_KEYS: Final = 4
FACTOR: Final = 15  # the factor of the hash, then two for each column after the first (store/secret.py)
FACTORS: Final = 2 * MAX_KEYS - 1
INDEX_WIDTH: Final = FACTOR + FACTORS

# columns of the table of ops
CODE: Final = 0
TARGET: Final = 1  # store probed or stored into; of EMIT: what the result is, INSERT or DELETE
INDEX: Final = 2
OP_NKEYS: Final = 3
OP_KEY0: Final = 4  # MAX_KEYS pairs (leaf, word) that make the key; for an ordered index: low and high bound
LOW_STRICT: Final = 12
HIGH_STRICT: Final = 13
CHECK_FROM: Final = 14  # checks[CHECK_FROM:CHECK_TO] must hold
CHECK_TO: Final = 15
SIMPLE: Final = (
    16  # one column hashed, nothing to check: 1 in a window, 3 in a state over RINGs; 2 and 4: EMIT follows; 0: not so
)
PAIR: Final = 17  # of LOOKUP: the CREATE that closes its segment, and the other way round; of DROP: the probe that must find something
PENDING: Final = 18  # of LOOKUP and CREATE: the row of `pending` that collects the value after a miss
AGAIN: Final = 19  # of UPDATE: 0: it is new; 1: so is the leaf BY, but it may have been told before in this pipeline; 2: or earlier
BY: Final = 20  # of UPDATE: which member of a reference the arriving tuple is
ALLOWED: Final = 21  # of PROBE: of each ALL tuples that come to it, so many probe; the others are counted (UNPROBED)
OP_WIDTH: Final = 22
ALL: Final = 1 << 20

# codes of ops
PROBE: Final = 0
STORE: Final = 1
EMIT: Final = 2
FILLED: Final = 3  # end of a pipeline that only fills a state
CREATE: Final = 4
UPDATE: Final = 5
LOOKUP: Final = 6  # from here on and PROBE: ops that are come back to
DROP: Final = 7

# what is emitted: the row numbers of a result's tuples, one row of the output for each leaf; behind them its time, and what it is
OUT_BEHIND: Final = 2  # rows of the output that are not leaves
INSERT: Final = 0  # the result has come about
DELETE: Final = 1  # the first of its tuples leaves

# columns of the table of checks: (comparison, leaf, word, leaf, word)
CHECK_WIDTH: Final = 5
EQ: Final = 0
NE: Final = 1
LT: Final = 2
LE: Final = 3

# columns of the table of counters, a row for each op
TUPLES_IN: Final = 0
MATCHES: Final = 1
UNPROBED: Final = 2  # tuples that came and were not allowed to probe
CREDIT: Final = 3  # what the allowance has left over, below ALL: when it is full, a tuple may probe
COUNTER_WIDTH: Final = 4

# columns of the table of given streams, a row for each stream
AT: Final = 0  # next row
ROWS_IN: Final = 1  # number of rows
TS_IN: Final = 2  # offset of timestamps in the input
COLS_IN: Final = 3  # offset of the first column; column c is at COLS_IN + c * ROWS_IN
ROW0: Final = 4  # row number of row 0
PART_IN: Final = 5  # offset of partition key and check columns, -1: none
ALIVE_IN: Final = 6  # offset in the flags, -1: all rows are alive
INPUT_WIDTH: Final = 7

# control words that carry a run of the kernel over its pauses
PHASE: Final = 0
OUT_ROWS: Final = 1
PC: Final = 2  # op to go on with
START: Final = 3  # first op of the pipeline under way
STREAM: Final = 4  # stream of the tuple under way
NOW: Final = 5  # result_ts of what is emitted
LEAVING: Final = 6  # id that leaves after its deletions have been emitted; -1: none
WANTED: Final = 7  # store that must grow
FRESH: Final = 8  # 1: enter PC from above; 0: go on below it
QUOTA: Final = 9  # arrivals until the kernel comes back by itself
FILL_NEXT: Final = 10  # next tuple of the driving window when a state is filled
PREFETCHES: Final = 11  # whether to prefetch for rows to come
HOLDS: Final = 12  # tuples and entries in all stores
PEAK: Final = 13  # the most that HOLDS has been
GROUP_SIZE: Final = (
    14  # rows of the next group (kernel/group.py), 0: none; negative: rows that go one by one before the next
)
GROUP_ROWS: Final = 15  # rows of the group under way ...
GROUP_SINGLY: Final = 16  # ... of which so many have gone on one by one, if it found too much
GROUP_RESULTS: Final = 17  # results of the last group
SET_OUT: Final = 18  # how often walkers have set out before their rows
GROUPS: Final = 19  # how many groups have been formed
NEWEST: Final = 20  # whether allowances go to the newest rows of each piece of input; else they are spread evenly
BEHIND: Final = 21  # then: how many of each ALL rows of its stream in this piece come after the row under way
CONTROL_WIDTH: Final = 22

# groups: notes of what each row may meet, lists of partial results, and those that walk along chains
BLOCK: Final = 64  # rows for which it is noted together what has left a RANGE window
GROUP_LEAST: Final = 8  # rows below which a group does not pay
GROUP_REST: Final = 4096  # rows that go one by one before a group is tried again
NOTE_STREAM: Final = 0
NOTE_ID: Final = 1  # -1: the row does not join
NOTE_NOW: Final = 2
NOTE_ROW: Final = 3  # how many results it has, then where they go
NOTE_FROM: Final = 4  # for each leaf: all ids below this have left, and the id after the last that has come; then 0 and FAR, for a state
LIST_COUNTS: Final = 0  # before the lists, for each: how many entries it has,
LIST_STORES: Final = 1  # the store that its ids are of,
LIST_HITS: Final = 2  # how many, the first of it, do not go on to the next probe, since a cache has answered,
LIST_CACHED: Final = 3  # and how many a cache has given, the first of it
LIST_BEFORE: Final = 4
LIST_ROWS: Final = 3  # of each list; list k begins with row LIST_ROWS * k, and there
LIST_PARENT: Final = LIST_BEFORE + 0  # entry of the list before that this one prolongs
LIST_ID: Final = LIST_BEFORE + 1
LIST_G: Final = LIST_BEFORE + 2  # row of the group
WALK_KEY: Final = 0  # for each entry that probes: its key,
WALK_PLACE: Final = 1  # the bucket of that,
WALK_LOW: Final = 2  # and what it may meet: from this id
WALK_HIGH: Final = 3  # to before this one
WALK_WHO: Final = 4  # for each that is still on its way: which entry it is,
WALK_AT: Final = 5  # and the id that it looks at next; for each entry that is stored: its id
WALK_SAFE: Final = 6  # for each entry that probes: from this id on none has left; before it timestamps tell
WALK_NEXT: Final = 7  # for each stream: the timestamp of its next row
WALK_HELD: Final = 8  # for each row of the group: what all windows hold with it, or a little more,
WALK_KEPT: Final = 9  # and how many entries of states it has made
WALK_ROWS: Final = 10

# walkers that look ahead, a row for each stream; each list has one place more, for what is written but not kept
WALKERS: Final = 16  # rows whose walkers go together
OUTERS: Final = 0  # walkers in chains of the first probe ...
INNERS: Final = 1  # ... and of the second
OUTER: Final = 2  # half words: records that the former look at next
OUTER_ROW: Final = OUTER + WALKERS + 1  # the rows that they go before
INNER: Final = OUTER_ROW + WALKERS + 1  # half words: buckets and links that the latter look at next
WALKER_WIDTH: Final = INNER + 2 * WALKERS + 1

# phases
PICK: Final = 0
PIPELINE: Final = 1  # a tuple is under way, depth first
GROUP_PROBES: Final = 2  # a group is under way; it may wait for room in a state
GROUP_WRITES: Final = 3  # its results wait for room in the output
GROUP_SINGLES: Final = 4  # it found too much: its rows go one by one

# why the kernel came back
DONE: Final = 0
OUT_FULL: Final = 1
GROW: Final = 2
PAUSED: Final = 3
GO_ON: Final = 4  # it did not

DEAD: Final = -(1 << 63)  # timestamp of a slot that holds no live tuple
FAR: Final = (1 << 63) - 1
