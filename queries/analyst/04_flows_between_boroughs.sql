-- How do trips flow between boroughs? Trips to zones that nobody named are there, too.
SELECT coalesce(f.borough, 'not known') AS from_borough,
       coalesce(t.borough, 'not known') AS to_borough,
       count(*) AS trips,
       round(avg(trip_distance), 6) AS mean_miles
FROM trips
LEFT JOIN zones f ON pickup_location_id = f.location_id
LEFT JOIN zones t ON dropoff_location_id = t.location_id
GROUP BY ALL
ORDER BY trips DESC, from_borough, to_borough
LIMIT 20;
