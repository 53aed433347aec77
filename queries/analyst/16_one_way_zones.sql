-- Zones at which trips end though none begins there, and the other way round.
(SELECT dropoff_location_id AS location_id, 'only to' AS way FROM trips
 EXCEPT
 SELECT pickup_location_id, 'only to' FROM trips)
UNION ALL
(SELECT pickup_location_id, 'only from' FROM trips
 EXCEPT
 SELECT dropoff_location_id, 'only from' FROM trips)
ORDER BY way, location_id NULLS LAST;
