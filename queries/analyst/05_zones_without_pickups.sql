-- In which zones does no trip begin?
SELECT borough, count(*) AS quiet_zones, string_agg(zone, '; ' ORDER BY zone) AS which
FROM zones z
WHERE NOT EXISTS (SELECT 1 FROM trips WHERE pickup_location_id = z.location_id)
GROUP BY borough
ORDER BY quiet_zones DESC, borough;
