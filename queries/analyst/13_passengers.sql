-- How many ride together? With subtotals by service and over all.
SELECT service, passenger_count, count(*) AS trips, grouping(service, passenger_count) AS level
FROM trips
GROUP BY ROLLUP (service, passenger_count)
ORDER BY service NULLS LAST, passenger_count NULLS LAST, level;
