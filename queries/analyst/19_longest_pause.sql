-- The longest times without any pickup in a file's month.
SELECT service, pickup_datetime AS until, date_diff('second', before, pickup_datetime) AS seconds
FROM (
  SELECT service,
         pickup_datetime,
         lag(pickup_datetime) OVER (
           PARTITION BY service, date_trunc('month', pickup_datetime) ORDER BY pickup_datetime
         ) AS before
  FROM trips
)
WHERE before IS NOT NULL
ORDER BY seconds DESC, service, until
LIMIT 10;
