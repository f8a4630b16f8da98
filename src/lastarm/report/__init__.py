"""What people look at: a search as a page (`page`), figures (`figures`) and exports (`exports`).

The page follows searches while they run, too (`live`).

Other tools are told of it while it runs, or later, by `loggers`. Beside these rooms are the line
that is drawn while a search goes on (`progress`), what to do next, and what several of them share:
hyperparameters, their importance, and the axes of charts. Nothing here changes a search: a report
reads its result and its events.
"""
