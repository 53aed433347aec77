-- The three dearest trips of each vendor.
SELECT vendor_id, total_amount, trip_distance, pickup_datetime
FROM trips
QUALIFY row_number() OVER (
  PARTITION BY vendor_id ORDER BY total_amount DESC NULLS LAST, pickup_datetime, trip_distance
) <= 3
ORDER BY vendor_id NULLS LAST, total_amount DESC NULLS LAST, pickup_datetime, trip_distance;
