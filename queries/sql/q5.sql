-- Without surcharges, tolls and tax.
SELECT
  avg((total_amount - extra - improvement_surcharge - tolls_amount - mta_tax) / trip_distance) AS dollars_per_mile
FROM trips
WHERE trip_distance >= 30;
