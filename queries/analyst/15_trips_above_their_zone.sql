-- Trips that cost more than three times the mean of the zone in which they begin.
SELECT count(*) AS trips, avg(total_amount) AS mean_total
FROM trips t
WHERE total_amount > 3 * (
  SELECT avg(total_amount) FROM trips u WHERE u.pickup_location_id = t.pickup_location_id
);
