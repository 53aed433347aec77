-- Takings by day, added up within each month, and beside the mean of the week before.
WITH days AS (
  SELECT pickup_datetime::DATE AS day, sum(total_amount) AS takings
  FROM trips
  GROUP BY day
)
SELECT day,
       takings,
       sum(takings) OVER (PARTITION BY date_trunc('month', day) ORDER BY day) AS month_so_far,
       avg(takings) OVER (
         ORDER BY day RANGE BETWEEN INTERVAL 7 DAY PRECEDING AND INTERVAL 1 DAY PRECEDING
       ) AS week_before
FROM days
ORDER BY day;
