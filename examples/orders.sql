-- Orders that were shipped although they were not paid in full: three streams and a table.
CREATE STREAM orders (id BIGINT, item BIGINT, price DOUBLE, ts TIMESTAMP)
  FROM 'examples/data/orders.parquet' FORMAT parquet;
CREATE STREAM payments (order_id BIGINT, amount DOUBLE, ts TIMESTAMP)
  FROM 'examples/data/payments.parquet' FORMAT parquet;
CREATE STREAM shipments (order_id BIGINT, depot STRING, ts TIMESTAMP)
  FROM 'examples/data/shipments.csv' FORMAT csv;
CREATE TABLE items (item BIGINT, name STRING) FROM 'examples/data/items.csv' FORMAT csv;

SELECT o.id, i.name, o.price, p.amount, s.depot
FROM orders [RANGE 1 HOUR] AS o, payments [RANGE 30 MINUTES] AS p, shipments [RANGE 30 MINUTES] AS s, items AS i
WHERE o.id = p.order_id AND o.id = s.order_id AND o.item = i.item AND p.amount < o.price
EMIT ISTREAM INTO 'examples/out/orders.csv' FORMAT csv;
