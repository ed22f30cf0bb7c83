-- From raw rows to numbers of a day, as they come, on the flights that `make demo` lands:
--   bronze  nyc.flights, the snapshots of an Iceberg table
--   silver  departures (expectations), operators (which airline flew a plane when: SCD type 2)
--   gold    nyc.daily, windows of a day in an Iceberg table, which `knut cdc run` delivers on
SET pipeline.name = 'medallion';

CREATE STREAMING TABLE departures (
  CONSTRAINT left_the_gate EXPECT (dep_delay IS NOT NULL) ON VIOLATION DROP ROW,
  CONSTRAINT arrived EXPECT (arr_delay IS NOT NULL),
  CONSTRAINT plane_is_known EXPECT (tailnum IS NOT NULL),
  CONSTRAINT from_new_york EXPECT (origin IN ('EWR', 'JFK', 'LGA')) ON VIOLATION FAIL UPDATE
)
USING parquet LOCATION 'silver/departures' COMMENT 'silver: flights that left'
AS SELECT id, time_hour, carrier, flight, tailnum, origin, dest, dep_delay, arr_delay, distance
FROM STREAM(read_iceberg('nyc.flights'));

CREATE TEMPORARY VIEW operator_changes COMMENT 'a plane, each time that another airline flies it'
AS SELECT tailnum, carrier, time_hour AS since
FROM (SELECT *, lag(carrier) OVER (PARTITION BY tailnum ORDER BY time_hour, id) AS before FROM departures)
WHERE tailnum IS NOT NULL AND carrier IS DISTINCT FROM before;

CREATE TABLE operators USING parquet LOCATION 'silver/operators.parquet' COMMENT 'silver: who flew a plane, and when';
APPLY CHANGES INTO operators FROM operator_changes KEYS (tailnum) SEQUENCE BY since STORED AS SCD TYPE 2;

CREATE STREAMING TABLE daily USING iceberg LOCATION 'nyc.daily' COMMENT 'gold: airports by the day'
AS SELECT window.start, window.end, origin, count(*) AS flights, count(*) FILTER (WHERE dep_delay > 15) AS late,
          avg(dep_delay) AS mean_delay
FROM STREAM(departures) WATERMARK time_hour DELAY OF INTERVAL 1 DAY
GROUP BY window(time_hour, '1 day'), origin;
