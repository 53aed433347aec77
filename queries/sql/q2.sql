-- Without night and rush-hour surcharges.
SELECT avg((total_amount - extra) / trip_distance) AS dollars_per_mile
FROM trips
WHERE trip_distance >= 30;
