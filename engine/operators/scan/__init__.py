"""The selective scan of stored tables, and scans of files, series and recursive tables."""
