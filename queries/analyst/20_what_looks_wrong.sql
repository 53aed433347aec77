-- What is wrong with the records?
SELECT problem, count(*) AS trips
FROM (
  SELECT 'ends before it begins' AS problem FROM trips WHERE dropoff_datetime < pickup_datetime
  UNION ALL
  SELECT 'costs less than nothing' FROM trips WHERE total_amount < 0
  UNION ALL
  SELECT 'no distance, but a fare' FROM trips WHERE trip_distance = 0 AND fare_amount > 0
  UNION ALL
  SELECT 'nobody on board' FROM trips WHERE passenger_count = 0
  UNION ALL
  SELECT 'a zone that is not in the list' FROM trips
  WHERE pickup_location_id IS NOT NULL AND pickup_location_id NOT IN (SELECT location_id FROM zones)
)
GROUP BY problem
ORDER BY problem;
