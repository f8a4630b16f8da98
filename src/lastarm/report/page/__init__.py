"""A search as one page of HTML.

Here are the contents of the page as plain data (`contents`, and `arm_stories` for what is said of
each arm), and the file itself (`html`, with its styles and scripts). What is shown on a terminal
is in `lastarm.cli`; what other tools read is in `exports`.
"""
