-- One card, two countries, nearly the same sum, within ten minutes: a stream joined with itself, on a key and on a band.
CREATE STREAM card_payments (card BIGINT, country STRING, amount DOUBLE, ts TIMESTAMP)
  FROM 'examples/data/card_payments.parquet' FORMAT parquet;

SELECT a.card, a.country AS first_country, b.country AS second_country, a.amount AS first_amount, b.amount AS second_amount,
  a.ts AS first_ts
FROM card_payments [RANGE 10 MINUTES] AS a, card_payments [RANGE 0 SECONDS] AS b
WHERE a.card = b.card AND a.country <> b.country AND a.ts < b.ts
  AND b.amount BETWEEN a.amount * 0.95 AND a.amount * 1.05
EMIT ISTREAM INTO 'examples/out/fraud.jsonl' FORMAT json;
