"""The tables of what stands in logs: metadata records and control records, grouped by what they are about."""
