-- How do fares change from one year to the next?
SELECT y, mean_fare, mean_fare / lag(mean_fare) OVER (ORDER BY y) - 1 AS growth
FROM (
  SELECT year(pickup_datetime) AS y, avg(fare_amount) AS mean_fare
  FROM trips
  WHERE fare_amount > 0
  GROUP BY y
)
ORDER BY y;
