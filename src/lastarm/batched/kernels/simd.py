"""Packs: a few numbers in one register, for loops that are too short for a compiler to pack.

What is done to a pack is done to each of its numbers, to the last bit as it would be done to the
number alone. These functions are for kernels:

- `full(number)` is as many of it as a register holds, `four(number)` is four of it, and
  `spread(number, pack)` as many as the pack has;
- `load(array, index, pack)` is a pack of that size from there on, `part(array, index, count,
  pack)` has only so many numbers, at least one, and 0 for the rest, `store(array, index, pack)`
  puts one there;
- `touch(array, index)` fetches what is there, to be changed, without waiting for it, and
  `glance(array, index)` does so for what is only read;
- `plus`, `minus` and `times` are for two packs or numbers, and `fused(a, b, c)` is ab + c, rounded
  once if the processor can;
- `size(pack)` is how many numbers it has, and `total(pack)` their sum: one half is added to the
  other, and again.

Given a number for a pack, `load` and `store` are for a number.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic, models, register_model

REGISTER = 32  # bytes; where registers are shorter, two of them are one

Written = tuple[Any, Any]  # the types that go in and come out, and what writes the instructions


class Pack(types.Type):
    """The type of a pack."""

    def __init__(self, dtype: Any, size: int) -> None:
        self.dtype, self.size = dtype, size
        super().__init__(name=f"Pack({dtype}, {size})")


class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, pack: Pack) -> None:
        number = manager.lookup(pack.dtype).get_value_type()
        model: Any = super()
        model.__init__(manager, pack, ir.VectorType(number, pack.size))


register_model(Pack)(_Model)


def _full(_: Any, number: Any) -> Written:
    pack = Pack(number, 8 * REGISTER // number.bitwidth)
    return pack(number), lambda *given: _everywhere(pack, *given)


def _four(_: Any, number: Any) -> Written:
    pack = Pack(number, 4)
    return pack(number), lambda *given: _everywhere(pack, *given)


def _spread(_: Any, number: Any, pack: Any) -> Written:
    return pack(number, pack), lambda *given: _everywhere(pack, *given)


def _everywhere(pack: Any, context: Any, builder: Any, signature: Any, given: Any) -> Any:
    nothing = ir.Constant(context.get_value_type(pack), ir.Undefined)
    first = builder.insert_element(nothing, given[0], ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, nothing, _places([0] * pack.size))


def _places(numbers: list[int]) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), numbers)


def _load(_: Any, array: Any, index: Any, pack: Any) -> Written:
    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place = _place(context, builder, array, given, pack)
        return builder.load(place, align=array.dtype.bitwidth // 8)

    return pack(array, types.intp, pack), write


def _part(_: Any, array: Any, index: Any, count: Any, pack: Any) -> Written:
    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        values, index, count, _ = given
        zero = ir.Constant(context.get_value_type(array.dtype), 0.0)
        rest = ir.Constant(context.get_value_type(pack), [zero] * pack.size)
        for place in range(pack.size):
            offset = ir.Constant(index.type, place)
            within = builder.icmp_signed("<", offset, count)
            # Further places are not looked at: they may be no part of the array.
            at = builder.select(within, builder.add(index, offset), index)
            number = builder.load(_place(context, builder, array, (values, at), array.dtype))
            number = builder.select(within, number, zero)
            rest = builder.insert_element(rest, number, ir.Constant(ir.IntType(32), place))
        return rest

    return pack(array, types.intp, types.intp, pack), write


def _store(_: Any, array: Any, index: Any, pack: Any) -> Written:
    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place = _place(context, builder, array, given, pack)
        builder.store(given[2], place, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, pack), write


def _touch(_: Any, array: Any, index: Any) -> Written:
    return _fetched(array, changed=1)


def _glance(_: Any, array: Any, index: Any) -> Written:
    return _fetched(array, changed=0)


def _fetched(array: Any, changed: int) -> Written:
    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        number, place = ir.IntType(32), _place(context, builder, array, given, types.int8)
        kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        # To be changed or not, to be kept in all caches, and no instructions.
        builder.call(fetch, [place, *(ir.Constant(number, flag) for flag in (changed, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.intp), write


def _place(context: Any, builder: Any, array: Any, given: Any, kind: Any) -> Any:
    numbers = context.make_array(array)(context, builder, given[0]).data
    pointer = context.get_value_type(kind).as_pointer()
    return builder.bitcast(builder.gep(numbers, [given[1]]), pointer)


def _plus(_: Any, a: Any, b: Any) -> Written:
    return a(a, b), lambda context, builder, signature, given: builder.fadd(*given)


def _minus(_: Any, a: Any, b: Any) -> Written:
    return a(a, b), lambda context, builder, signature, given: builder.fsub(*given)


def _times(_: Any, a: Any, b: Any) -> Written:
    return a(a, b), lambda context, builder, signature, given: builder.fmul(*given)


def _fused(_: Any, a: Any, b: Any, c: Any) -> Written:
    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        product = builder.fmul(given[0], given[1], flags=("contract",))
        return builder.fadd(product, given[2], flags=("contract",))

    return a(a, b, c), write


def _size(_: Any, pack: Any) -> Written:
    return types.intp(pack), lambda context, *_: context.get_constant(types.intp, pack.size)


def _total(_: Any, pack: Any) -> Written:
    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        rest, size = given[0], pack.size
        while size > 1:
            size //= 2
            low, high = list(range(size)), list(range(size, 2 * size))
            halves = (builder.shuffle_vector(rest, rest, _places(half)) for half in (low, high))
            rest = builder.fadd(*halves)
        return builder.extract_element(rest, ir.Constant(ir.IntType(32), 0))

    return pack.dtype(pack), write


size: Any = intrinsic(_size)
full: Any = intrinsic(_full)
four: Any = intrinsic(_four)
spread: Any = intrinsic(_spread)
load: Any = intrinsic(_load)
part: Any = intrinsic(_part)
store: Any = intrinsic(_store)
touch: Any = intrinsic(_touch)
glance: Any = intrinsic(_glance)
plus: Any = intrinsic(_plus)
minus: Any = intrinsic(_minus)
times: Any = intrinsic(_times)
fused: Any = intrinsic(_fused)
total: Any = intrinsic(_total)
