-- What do people tip, by how they pay? Cash tips are not written down.
SELECT payment_type,
       count(*) AS trips,
       count(*) FILTER (WHERE tip_amount > 0) AS tipped,
       100.0 * sum(tip_amount) / nullif(sum(fare_amount), 0) AS percent_of_fares
FROM trips
GROUP BY payment_type
ORDER BY payment_type NULLS LAST;
