"""What people look at: a search as figures and as one page."""
