-- From raw rows to numbers of a day, on the flights that `make demo` lands (docs/pipelines.md):
--   bronze  nyc.flights, an Iceberg table
--   silver  departures (expectations), operators (which airline flew a plane when: SCD type 2)
--   gold    nyc.daily, an Iceberg table that `knut cdc run` delivers on
SET pipeline.name = 'medallion';

CREATE INPUT flights USING iceberg LOCATION 'nyc.flights' COMMENT 'bronze: as landed';

CREATE TABLE departures (
  CONSTRAINT left_the_gate EXPECT (dep_delay IS NOT NULL) ON VIOLATION DROP ROW,
  CONSTRAINT arrived EXPECT (arr_delay IS NOT NULL),
  CONSTRAINT plane_is_known EXPECT (tailnum IS NOT NULL),
  CONSTRAINT from_new_york EXPECT (origin IN ('EWR', 'JFK', 'LGA')) ON VIOLATION FAIL UPDATE
)
USING parquet PARTITIONED BY (months(time_hour)) LOCATION 'silver/departures' WRITE MODE OVERWRITE
COMMENT 'silver: flights that left'
AS SELECT id, time_hour, carrier, flight, tailnum, origin, dest, dep_delay, arr_delay, distance FROM flights;

CREATE TEMPORARY VIEW operator_changes COMMENT 'a plane, each time that another airline flies it'
AS SELECT tailnum, carrier, time_hour AS since
FROM (SELECT *, lag(carrier) OVER (PARTITION BY tailnum ORDER BY time_hour, id) AS before FROM departures)
WHERE tailnum IS NOT NULL AND carrier IS DISTINCT FROM before;

CREATE TABLE operators USING parquet LOCATION 'silver/operators.parquet' COMMENT 'silver: who flew a plane, and when';
APPLY CHANGES INTO operators FROM operator_changes KEYS (tailnum) SEQUENCE BY since STORED AS SCD TYPE 2;

CREATE SINK daily USING iceberg LOCATION 'nyc.daily' WRITE MODE OVERWRITE COMMENT 'gold: airports by the day'
AS SELECT date_trunc('day', d.time_hour) AS day, d.origin, count(*) AS flights,
          count(*) FILTER (WHERE d.dep_delay > 15) AS late, round(avg(d.dep_delay), 2) AS mean_delay,
          count(DISTINCT o.tailnum) AS planes
FROM departures AS d
LEFT JOIN operators AS o
  ON o.tailnum = d.tailnum AND d.time_hour >= o.__start_at AND (o.__end_at IS NULL OR d.time_hour < o.__end_at)
GROUP BY ALL ORDER BY day, origin;
