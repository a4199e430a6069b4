"""How kernels become LLVM's code: elements of flat arrays and operators on numbers take the short way.

Numba unpacks the whole array for each element, and looks through dozens of ways to add for every `+`, twice. Most of
what kernels are made of is this, so most of their compile time was. What is computed stays the same.
"""

from __future__ import annotations

from typing import Any, ClassVar

import llvmlite.ir
import numpy as np
from numba import types

from weft.kernels.calling import room_for
from weft.kernels.numba_internals import (
    Lower,
    Module,
    RangeIteratorType,
    RangeType,
    cgutils,
    get_definition,
    guard,
    ir,
    populate_array,
    typed,
)

ITEMS, DATA, SHAPE = 2, 4, 5  # of the parts of an array
NUMBER = llvmlite.ir.IntType(32)  # of a part
EXTREMES = {max: ">", min: "<"}  # of two whole numbers, and which of them is taken
NEW_ARRAYS = (np.empty, np.zeros)
ALIGNED = 32  # where a new array begins: at a multiple of so many bytes


def is_flat(kind: Any) -> bool:
    """Whether a type is that of arrays whose elements lie side by side."""
    return isinstance(kind, types.Array) and kind.ndim == 1 and kind.layout == "C" and kind.aligned


def plain(kind: Any) -> Any:
    """The type of a number, whether it is known or not."""
    return getattr(kind, "literal_type", kind)


def is_pair(kinds: Any) -> bool:
    """Whether types are those of two whole numbers, with a sign both or neither."""
    return (
        len(kinds) == 2
        and all(isinstance(kind, types.Integer) for kind in kinds)
        and plain(kinds[0]).signed == plain(kinds[1]).signed
    )


def is_new_array(kinds: Any) -> bool:
    """Whether types are those of a whole number of elements, and of what elements are."""
    return len(kinds) == 2 and isinstance(kinds[0], types.Integer) and isinstance(kinds[1], types.NumberClass)


class KnownTypes:
    """Numba's types of calls, found once for numbers and arrays."""

    known: ClassVar[dict[object, Any]] = {}

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, args: Any, named: Any) -> Any:
        """The signature of a call."""
        wanted = tuple(map(plain, args))
        if isinstance(function, types.Dispatcher):
            return self._context.resolve_function_type(function, wanted, named)
        if getattr(function, "typing_key", None) in EXTREMES and is_pair(wanted):
            kind = self._context.unify_types(*wanted)
            return typed(kind, kind, kind)
        if getattr(function, "typing_key", None) in NEW_ARRAYS and is_new_array(wanted) and not named:
            return typed(types.Array(wanted[1].dtype, 1, "C"), types.intp, wanted[1])
        if named or not all(isinstance(kind, (types.Number, types.Boolean, types.Array)) for kind in wanted):
            return self._context.resolve_function_type(function, args, named)
        key = (getattr(function, "typing_key", function), wanted)
        if key not in self.known:
            self.known[key] = self._context.resolve_function_type(function, args, named)
        return self.known[key]

    def resolve_static_getitem(self, value: Any, index: Any) -> Any:
        """The signature of an element that has a constant number; none for arrays, which know only one way."""
        return None if is_flat(value) and isinstance(index, int) else self._context.resolve_static_getitem(value, index)

    def resolve_static_setitem(self, target: Any, index: Any, value: Any) -> Any:
        """Return the signature of an assignment to an element with a constant index."""
        if is_flat(target) and isinstance(index, int):
            return None
        return self._context.resolve_static_setitem(target, index, value)

    def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
        """The signature of a change of an element."""
        wanted = (self.resolve_setitem.__name__, target, plain(index), plain(value))
        if wanted not in self.known:
            self.known[wanted] = self._context.resolve_setitem(target, index, value)
        return self.known[wanted]


class KernelLower(Lower):  # type: ignore[misc, unused-ignore]
    """Writes LLVM's code of one function."""

    ways: ClassVar[dict[object, Any]] = {}  # how operators on numbers are written

    def lower_inst(self, inst: Any) -> Any:
        """One statement."""
        if isinstance(inst, ir.Assign):
            value = self.lower_assign(self.typeof(inst.target.name), inst)
            return self.storevar(value, inst.target.name, argidx=0 if isinstance(inst.value, ir.Arg) else None)
        if isinstance(inst, ir.StaticSetItem) and is_flat(self.typeof(inst.target.name)):
            return self.lower_setitem(inst.target, inst.index_var, inst.value, self.fndesc.calltypes[inst])
        return super().lower_inst(inst)

    def lower_assign(self, ty: Any, inst: Any) -> Any:
        """The value that a variable gets; functions and modules are known by their types."""
        if isinstance(ty, (types.Callable, Module)) and isinstance(inst.value, (ir.Global, ir.FreeVar)):
            return self.context.get_dummy_value()
        return super().lower_assign(ty, inst)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """One expression."""
        if expr.op == "static_getitem" and is_flat(self.typeof(expr.value.name)) and expr.index_var is not None:
            return self.lower_getitem(resty, expr, expr.value, expr.index_var, self.fndesc.calltypes[expr])
        if expr.op == "getiter" and self._steps_by_one(expr.value):
            return self._counter(expr.value, resty)
        if expr.op == "iternext" and isinstance(self.typeof(expr.value.name), RangeIteratorType):
            return self._next_of(expr.value, resty)
        return super().lower_expr(resty, expr)

    def lower_call(self, resty: Any, expr: Any) -> Any:
        """A call."""
        function, signature = self.typeof(expr.func.name), self.fndesc.calltypes[expr]
        name = getattr(function, "typing_key", None)
        if name is len and is_flat(signature.args[0]):
            return self._part(expr.args[0], SHAPE, 0)
        if name is range and not expr.kws and expr.vararg is None:
            given = [self._cast_var(*each) for each in zip(expr.args, signature.args, strict=True)]
            return self._range(given, resty)
        if name in NEW_ARRAYS and is_new_array(signature.args):
            return self._new_array(self._cast_var(expr.args[0], types.intp), resty, is_zero=name is np.zeros)
        if name in EXTREMES and is_pair(signature.args):
            one, other = (self._cast_var(*each) for each in zip(expr.args, signature.args, strict=True))
            compare = self.builder.icmp_signed if signature.return_type.signed else self.builder.icmp_unsigned
            found = self.builder.select(compare(EXTREMES[name], other, one), other, one)
            return self.context.cast(self.builder, found, signature.return_type, resty)
        return super().lower_call(resty, expr)

    def _new_array(self, count: Any, kind: Any, *, is_zero: bool) -> Any:
        """An array of the kernel's own."""
        context, builder = self.context, self.builder
        width = count.type(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
        size = builder.mul(count, width)
        owner = context.nrt.meminfo_alloc_aligned(builder, size, NUMBER(ALIGNED))
        data = context.nrt.meminfo_data(builder, owner)
        if is_zero:
            cgutils.memset(builder, data, size, 0)
        made = context.make_array(kind)(context, builder)
        data = builder.bitcast(data, made.data.type)
        populate_array(made, data=data, shape=[count], strides=[width], itemsize=width, meminfo=owner)
        return made._getvalue()

    def _range(self, given: list[Any], kind: Any) -> Any:
        """Start, stop and step of a range."""
        start, step = (self.context.get_constant(kind.dtype, number) for number in (0, 1))
        return self._struct(kind, (start, *given, step) if len(given) == 1 else (*given, step)[:3])

    def _steps_by_one(self, value: Any) -> bool:
        """Whether a variable is a range without a step."""
        if not isinstance(self.typeof(value.name), RangeType):
            return False
        made = guard(get_definition, self.func_ir, value)
        return isinstance(made, ir.Expr) and made.op == "call" and len(made.args) < 3

    def _counter(self, value: Any, kind: Any) -> Any:
        """What counts through a range: rooms for the next number and for how many are left, stop and step."""
        builder = self.builder
        start, stop, step = (self._part(value, number) for number in range(3))
        count = builder.sub(stop, start)
        count = builder.select(builder.icmp_signed(">", count, count.type(0)), count, count.type(0))
        rooms = [room_for(builder, count.type) for _ in range(2)]
        for number, room in zip((start, count), rooms, strict=True):
            builder.store(number, room)
        return self._struct(kind, (rooms[0], stop, step, rooms[1]))

    def _next_of(self, counter: Any, kind: Any) -> Any:
        """The next number of a range, and whether there was one."""
        builder = self.builder
        at, step, left = (self._part(counter, number) for number in (0, 2, 3))
        number, count = builder.load(at), builder.load(left)
        builder.store(builder.sub(count, count.type(1), flags=["nsw"]), left)
        builder.store(builder.add(number, step), at)
        return self._struct(kind, (number, builder.icmp_signed(">", count, count.type(0))))

    def _struct(self, kind: Any, members: tuple[Any, ...]) -> Any:
        """A value of several parts."""
        made = llvmlite.ir.Constant(self.context.get_value_type(kind), llvmlite.ir.Undefined)
        for number, member in enumerate(members):
            made = self.builder.insert_value(made, member, number)
        return made

    def alloca_lltype(self, name: str, lltype: Any, datamodel: Any = None) -> Any:
        """Allocate a variable, initialised if it is reference counted, because the old value is released."""
        if self.context.enable_nrt:
            return cgutils.alloca_once(self.builder, lltype, name=name, zfill=False)
        return room_for(self.builder, lltype, name)

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        """Give a variable a value."""
        if self.context.enable_nrt or name in self._singly_assigned_vars:
            super().storevar(value, name, argidx)
        else:
            self._alloca_var(name, self.typeof(name))
            self.builder.store(value, self.getvar(name))

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        """An operator between two values."""
        key = (op, tuple(map(plain, self.fndesc.calltypes[expr].args)))
        known = KnownTypes.known.get(key)
        if known is None:
            return super().lower_binop(resty, expr, op)
        if key not in self.ways:
            operator = self.context.typing_context.resolve_value_type(op)
            self.ways[key] = self.context.get_function(operator, known)._imp
        sides = tuple(self._cast_var(*side) for side in zip((expr.lhs, expr.rhs), known.args, strict=True))
        found = self.ways[key](self.context, self.builder, known, sides, loc=None)
        return self.context.cast(self.builder, found, known.return_type, resty)

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """An element."""
        array = self.typeof(value.name)
        if not (is_flat(array) and isinstance(signature.args[1], types.Integer)):
            return super().lower_getitem(resty, expr, value, index, signature)
        found = self.context.unpack_value(self.builder, array.dtype, self._element(value, index, signature.args[1]))
        return self.context.cast(self.builder, found, array.dtype, resty)

    def lower_setitem(self, target: Any, index: Any, value: Any, signature: Any) -> Any:
        """A change of an element."""
        array = self.typeof(target.name)
        if not (is_flat(array) and isinstance(signature.args[1], types.Integer)):
            return super().lower_setitem(target, index, value, signature)
        new = self._cast_var(value, array.dtype)
        self.context.pack_value(self.builder, array.dtype, new, self._element(target, index, signature.args[1]))
        return None

    def _element(self, array: Any, index: Any, kind: Any) -> Any:
        """Where an element is; only constants below zero count from the end."""
        place = self._cast_var(index, types.intp if kind.signed else types.uintp)
        if self._is_negative(index):
            place = self.builder.add(place, self._part(array, SHAPE, 0))
        return self.builder.gep(self._part(array, DATA), [place])

    def _part(self, variable: Any, *place: int) -> Any:
        """A part of a variable, of which the rest is not looked at."""
        if variable.name in self._singly_assigned_vars:
            return self.builder.extract_value(self.loadvar(variable.name), place)
        steps = [llvmlite.ir.Constant(NUMBER, number) for number in (0, *place)]
        return self.builder.load(self.builder.gep(self.getvar(variable.name), steps, inbounds=True))

    def _is_negative(self, index: Any) -> bool:
        """Whether a variable is a constant below zero."""
        known = getattr(self.typeof(index.name), "literal_value", 0)
        return known < 0
