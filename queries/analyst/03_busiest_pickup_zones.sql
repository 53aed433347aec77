-- Where do most trips begin?
SELECT z.borough, z.zone, count(*) AS trips
FROM trips JOIN zones z ON trips.pickup_location_id = z.location_id
GROUP BY z.borough, z.zone
ORDER BY trips DESC, z.borough, z.zone
LIMIT 10;
