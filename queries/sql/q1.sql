-- What does a driver make per mile on trips of at least 30 miles?
SELECT avg(total_amount / trip_distance) AS dollars_per_mile
FROM trips
WHERE trip_distance >= 30;
