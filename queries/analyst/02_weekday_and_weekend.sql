-- Do trips of the weekend differ from those of working days?
SELECT isodow(pickup_datetime) >= 6 AS weekend,
       count(*) AS trips,
       median(trip_distance) AS median_miles,
       quantile_cont(trip_distance, 0.95) AS long_miles,
       avg(total_amount) AS mean_total
FROM trips
WHERE trip_distance BETWEEN 0.1 AND 100
GROUP BY weekend
ORDER BY weekend;
