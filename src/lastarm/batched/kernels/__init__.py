"""The compiled code of the batched trainers, and nothing else: functions that numba compiles.

`compiled` holds the decorators that a kernel is made with. What a caller gives is checked outside,
by the models; a kernel trusts its arguments.

numba keeps compiled kernels on the disk and compares the file that a kernel stands in, but not the
files of the functions that it calls. After a change to a function that kernels of other files
call, remove the folders `__pycache__`.
"""
