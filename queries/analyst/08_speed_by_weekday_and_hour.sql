-- How fast is traffic, in miles an hour?
WITH timed AS (
  SELECT pickup_datetime, trip_distance, date_diff('second', pickup_datetime, dropoff_datetime) AS seconds
  FROM trips
  WHERE trip_distance BETWEEN 0.1 AND 100
)
SELECT isodow(pickup_datetime) AS weekday,
       hour(pickup_datetime) // 6 AS quarter_of_day,
       avg(trip_distance / (seconds / 3600.0)) AS mean_speed,
       count(*) AS trips
FROM timed
WHERE seconds BETWEEN 60 AND 14400
GROUP BY weekday, quarter_of_day
ORDER BY weekday, quarter_of_day;
