"""The limit: the three-way query written by hand, for nothing else, with numba. Results as row ids into a ring of output rows.

`direct`: keys address their chains directly (small domain). `hashed`: a power-of-two table of chains, keys compared.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

BIG = 1 << 62


@numba.njit(cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def direct(rts: Any, ra: Any, sts: Any, sa: Any, sb: Any, tts: Any, tb: Any, window: int, domain: int, out: Any) -> int:
    nr, ns, nt, cap = len(rts), len(sts), len(tts), out.shape[1]
    head_r, head_sa = np.full(domain, -1), np.full(domain, -1)
    head_sb, head_t = np.full(domain, -1), np.full(domain, -1)
    link_r, link_sa, link_sb, link_t = (
        np.empty(nr, np.int64),
        np.empty(ns, np.int64),
        np.empty(ns, np.int64),
        np.empty(nt, np.int64),
    )
    i = j = k = fr = fs = ft = row = total = 0
    while True:
        a = rts[i] if i < nr else BIG
        b = sts[j] if j < ns else BIG
        c = tts[k] if k < nt else BIG
        now = min(a, b, c)
        if now == BIG:
            return total
        while fr < i and rts[fr] < now - window:
            fr += 1
        while fs < j and sts[fs] < now - window:
            fs += 1
        while ft < k and tts[ft] < now - window:
            ft += 1
        if a == now:
            s = head_sa[ra[i]]
            while s >= fs:
                t = head_t[sb[s]]
                while t >= ft:
                    if row == cap:
                        row = 0
                    out[0, row], out[1, row], out[2, row], out[3, row] = i, s, t, now
                    row += 1
                    total += 1
                    t = link_t[t]
                s = link_sa[s]
            link_r[i] = head_r[ra[i]]
            head_r[ra[i]] = i
            i += 1
        elif b == now:
            r = head_r[sa[j]]
            while r >= fr:
                t = head_t[sb[j]]
                while t >= ft:
                    if row == cap:
                        row = 0
                    out[0, row], out[1, row], out[2, row], out[3, row] = r, j, t, now
                    row += 1
                    total += 1
                    t = link_t[t]
                r = link_r[r]
            link_sa[j] = head_sa[sa[j]]
            head_sa[sa[j]] = j
            link_sb[j] = head_sb[sb[j]]
            head_sb[sb[j]] = j
            j += 1
        else:
            s = head_sb[tb[k]]
            while s >= fs:
                r = head_r[sa[s]]
                while r >= fr:
                    if row == cap:
                        row = 0
                    out[0, row], out[1, row], out[2, row], out[3, row] = r, s, k, now
                    row += 1
                    total += 1
                    r = link_r[r]
                s = link_sb[s]
            link_t[k] = head_t[tb[k]]
            head_t[tb[k]] = k
            k += 1


@numba.njit(cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def hashed(rts: Any, ra: Any, sts: Any, sa: Any, sb: Any, tts: Any, tb: Any, window: int, bits: int, out: Any) -> int:
    nr, ns, nt, cap = len(rts), len(sts), len(tts), out.shape[1]
    size, shift, mask = 1 << bits, 64 - bits, (1 << bits) - 1
    mul = -7046029254386353131
    head_r, head_sa = np.full(size, -1), np.full(size, -1)
    head_sb, head_t = np.full(size, -1), np.full(size, -1)
    link_r, link_sa, link_sb, link_t = (
        np.empty(nr, np.int64),
        np.empty(ns, np.int64),
        np.empty(ns, np.int64),
        np.empty(nt, np.int64),
    )
    i = j = k = fr = fs = ft = row = total = 0
    while True:
        a = rts[i] if i < nr else BIG
        b = sts[j] if j < ns else BIG
        c = tts[k] if k < nt else BIG
        now = min(a, b, c)
        if now == BIG:
            return total
        while fr < i and rts[fr] < now - window:
            fr += 1
        while fs < j and sts[fs] < now - window:
            fs += 1
        while ft < k and tts[ft] < now - window:
            ft += 1
        if a == now:
            bucket = ((ra[i] * mul) >> shift) & mask
            s = head_sa[bucket]
            while s >= fs:
                if sa[s] == ra[i]:
                    t = head_t[((sb[s] * mul) >> shift) & mask]
                    while t >= ft:
                        if tb[t] == sb[s]:
                            if row == cap:
                                row = 0
                            out[0, row], out[1, row], out[2, row], out[3, row] = i, s, t, now
                            row += 1
                            total += 1
                        t = link_t[t]
                s = link_sa[s]
            link_r[i] = head_r[bucket]
            head_r[bucket] = i
            i += 1
        elif b == now:
            bucket_a, bucket_b = ((sa[j] * mul) >> shift) & mask, ((sb[j] * mul) >> shift) & mask
            r = head_r[bucket_a]
            while r >= fr:
                if ra[r] == sa[j]:
                    t = head_t[bucket_b]
                    while t >= ft:
                        if tb[t] == sb[j]:
                            if row == cap:
                                row = 0
                            out[0, row], out[1, row], out[2, row], out[3, row] = r, j, t, now
                            row += 1
                            total += 1
                        t = link_t[t]
                r = link_r[r]
            link_sa[j] = head_sa[bucket_a]
            head_sa[bucket_a] = j
            link_sb[j] = head_sb[bucket_b]
            head_sb[bucket_b] = j
            j += 1
        else:
            bucket = ((tb[k] * mul) >> shift) & mask
            s = head_sb[bucket]
            while s >= fs:
                if sb[s] == tb[k]:
                    r = head_r[((sa[s] * mul) >> shift) & mask]
                    while r >= fr:
                        if ra[r] == sa[s]:
                            if row == cap:
                                row = 0
                            out[0, row], out[1, row], out[2, row], out[3, row] = r, s, k, now
                            row += 1
                            total += 1
                        r = link_r[r]
                s = link_sb[s]
            link_t[k] = head_t[bucket]
            head_t[bucket] = k
            k += 1


@numba.njit(cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def chase(chain: Any, steps: int) -> int:
    """Follow a chain of random places: one cache miss after the other."""
    at = 0
    for _ in range(steps):
        at = chain[at]
    return at
