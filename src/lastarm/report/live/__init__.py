"""A search on a page while it runs.

Here are what is known of a journal at each moment and what of it is new (`watched`), the server
that sends it to browsers (`server`), and who may ask it for what (`gate`). The page is the one of
the report (`lastarm.report.page`), which draws again what has changed. All of it only reads
journals.
"""
