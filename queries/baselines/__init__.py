"""The systems that BamQuery is compared with and checked by; each is imported when it is asked for."""
