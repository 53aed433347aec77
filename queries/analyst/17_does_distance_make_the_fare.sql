-- How well does distance explain the fare, for each kind of rate?
SELECT rate_code_id,
       count(*) AS trips,
       corr(fare_amount, trip_distance) AS correlation,
       regr_slope(fare_amount, trip_distance) AS dollars_a_mile,
       regr_intercept(fare_amount, trip_distance) AS base_fare
FROM trips
WHERE trip_distance BETWEEN 0.1 AND 100 AND fare_amount BETWEEN 0.01 AND 500
GROUP BY rate_code_id
HAVING count(*) >= 30
ORDER BY rate_code_id NULLS LAST;
