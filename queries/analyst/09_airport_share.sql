-- What share of trips begins or ends at an airport, by year?
WITH airports AS (SELECT location_id FROM zones WHERE zone ILIKE '%airport%')
SELECT year(pickup_datetime) AS y,
       count(*) AS trips,
       count(*) FILTER (
         WHERE pickup_location_id IN (FROM airports) OR dropoff_location_id IN (FROM airports)
       ) AS airport_trips
FROM trips
WHERE pickup_location_id IS NOT NULL
GROUP BY y
ORDER BY y;
