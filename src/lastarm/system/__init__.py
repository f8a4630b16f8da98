"""What lastarm needs of the operating system: processes (`offspring`) and temporary folders.

Files that have to survive a power cut are in `lastarm.journal.disk`, and what a signal does to a
search is in `lastarm.signals`.
"""
