-- At which hours do people ride, and what do they pay?
SELECT hour(pickup_datetime) AS hour_of_day, count(*) AS trips, avg(fare_amount) AS mean_fare
FROM trips
GROUP BY hour_of_day
ORDER BY hour_of_day;
