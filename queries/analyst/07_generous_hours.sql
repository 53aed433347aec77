-- At which hours of which weekdays is the tip the greatest share of the fare?
SELECT dayname(pickup_datetime) AS weekday,
       hour(pickup_datetime) AS hour_of_day,
       avg(tip_amount / fare_amount) AS share,
       count(*) AS trips
FROM trips
WHERE payment_type = 1 AND fare_amount > 0
GROUP BY weekday, hour_of_day
HAVING count(*) >= 20
ORDER BY share DESC, weekday, hour_of_day
LIMIT 10;
