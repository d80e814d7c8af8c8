-- From an advertisement to a purchase, with a budget and what may be given up when it does not suffice: of the views at least
-- one in ten is kept, and a click is worth three times as much as a view. FRESHNESS is not carried out yet: a run says so.
CREATE STREAM views (view BIGINT, campaign BIGINT, ts TIMESTAMP) FROM 'examples/data/views.parquet' FORMAT parquet;
CREATE STREAM clicks (view BIGINT, user BIGINT, ts TIMESTAMP) FROM 'examples/data/clicks.parquet' FORMAT parquet;
CREATE STREAM purchases (user BIGINT, amount DOUBLE, ts TIMESTAMP) FROM 'examples/data/purchases.parquet' FORMAT parquet;

SELECT v.campaign, c.user, p.amount, p.ts - v.ts AS delay
FROM views [RANGE 20 MINUTES] AS v, clicks [RANGE 15 MINUTES] AS c, purchases [RANGE 1 MINUTE] AS p
WHERE v.view = c.view AND c.user = p.user AND c.ts <= p.ts
FRESHNESS (v 25 MINUTES)
BUDGET (CPU 0.8, MEMORY 64 MB)
ON OVERLOAD SHED (v WEIGHT 1 AT LEAST 10 PERCENT, c WEIGHT 3)
EMIT ISTREAM INTO 'examples/out/clicks/' FORMAT parquet;
