"""The compiled code of the batched trainers, and nothing else: functions that numba compiles.

`lastarm.compiled` has the decorators of kernels. Kernels do not check their arguments: the models,
which are outside of this folder, do. What a kernel takes from its model is a few named tuples of
arrays.

numba keeps compiled kernels on the disk. It notices changes in the file of a kernel, but not in
the files of the functions that the kernel calls. After such a change remove the `__pycache__` of
this folder.
"""
