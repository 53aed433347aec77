-- How long do trips take, in seconds and by borough?
SELECT borough,
       quantile_disc(seconds, 0.25) AS quarter,
       quantile_disc(seconds, 0.5) AS half,
       quantile_disc(seconds, 0.75) AS three_quarters,
       max(seconds) AS longest
FROM (
  SELECT z.borough, date_diff('second', pickup_datetime, dropoff_datetime) AS seconds
  FROM trips JOIN zones z ON pickup_location_id = z.location_id
)
WHERE seconds > 0
GROUP BY borough
ORDER BY borough;
