"""A search as figures, drawn by matplotlib.

`plots` has the figures, `drawing` what all figures of the house share, and `palette` the colours
and labels, which need no matplotlib. Charts of the page are drawn in the browser.
"""
