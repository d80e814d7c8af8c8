-- What did the sensors of a machine say when it raised an alarm? The last three readings of each of its sensors.
-- Readings without a value still count as readings: the window comes before WHERE.
CREATE STREAM readings (sensor BIGINT, celsius DOUBLE, ts TIMESTAMP)
  FROM 'examples/data/readings.jsonl' FORMAT json TIMESTAMP ts LATENESS 1 SECOND;
CREATE STREAM alarms (machine STRING, code STRING, ts TIMESTAMP)
  FROM 'examples/data/alarms.jsonl' FORMAT json;
CREATE TABLE sensors (sensor BIGINT, machine STRING, site STRING) FROM 'examples/data/sensors.csv' FORMAT csv;

SELECT a.ts AS alarm_ts, a.machine, a.code, r.sensor, r.celsius, a.ts - r.ts AS age, m.site
FROM alarms [RANGE 0 SECONDS] AS a, readings [PARTITION BY sensor ROWS 3] AS r, sensors AS m
WHERE a.machine = m.machine AND r.sensor = m.sensor AND r.celsius IS NOT NULL AND a.code LIKE 'E%'
EMIT ISTREAM INTO 'examples/out/sensors.parquet' FORMAT parquet;
