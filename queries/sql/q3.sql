-- Without surcharges and the improvement surcharge.
SELECT avg((total_amount - extra - improvement_surcharge) / trip_distance) AS dollars_per_mile
FROM trips
WHERE trip_distance >= 30;
