"""What a plan can scan, and what is known of it before anything is read."""
