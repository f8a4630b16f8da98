"""A search as one page of HTML: what it tells, and how that is written down and shown."""
