-- Trips and takings by bands of distance.
SELECT CASE
         WHEN trip_distance IS NULL THEN 'not known'
         WHEN trip_distance <= 0 THEN '0 none'
         WHEN trip_distance < 1 THEN '1 below a mile'
         WHEN trip_distance < 3 THEN '2 one to three'
         WHEN trip_distance < 10 THEN '3 three to ten'
         WHEN trip_distance < 30 THEN '4 ten to thirty'
         ELSE '5 thirty and more'
       END AS band,
       count(*) AS trips,
       sum(total_amount) AS takings,
       count(DISTINCT payment_type) AS ways_to_pay
FROM trips
GROUP BY band
ORDER BY band;
