"""How kernels become LLVM's code: elements of flat arrays and operators on numbers take the short way.

Numba unpacks the whole array for each element, and looks through dozens of ways to add for every `+`, twice. Most of
what kernels are made of is this, so most of their compile time was. What is computed stays the same.
"""

from __future__ import annotations

from typing import Any, ClassVar

from numba.core import cgutils, ir, types
from numba.core.compiler_machinery import register_pass
from numba.core.ir_utils import enforce_no_dels, enforce_no_phis
from numba.core.lowering import Lower
from numba.core.typed_passes import IRLegalization, NativeLowering

DATA, SHAPE = 4, 5  # of the parts of an array


def is_flat(kind: Any) -> bool:
    """Whether a type is that of arrays whose elements lie side by side."""
    return isinstance(kind, types.Array) and kind.ndim == 1 and kind.layout == "C" and kind.aligned


def plain(kind: Any) -> Any:
    """The type of a number, whether it is known or not."""
    return getattr(kind, "literal_type", kind)


class KnownTypes:
    """Numba's types of calls, found once for numbers and arrays."""

    known: ClassVar[dict[object, Any]] = {}

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, args: Any, named: Any) -> Any:
        """The signature of a call."""
        if named or isinstance(function, types.Dispatcher):
            return self._context.resolve_function_type(function, args, named)
        wanted = tuple(map(plain, args))
        if not all(isinstance(kind, (types.Number, types.Boolean, types.Array)) for kind in wanted):
            return self._context.resolve_function_type(function, args, named)
        if (function, wanted) not in self.known:
            self.known[function, wanted] = self._context.resolve_function_type(function, args, named)
        return self.known[function, wanted]

    def resolve_static_getitem(self, value: Any, index: Any) -> Any:
        """The signature of an element that has a constant number; none for arrays, which know only one way."""
        return None if is_flat(value) and isinstance(index, int) else self._context.resolve_static_getitem(value, index)

    def resolve_static_setitem(self, target: Any, index: Any, value: Any) -> Any:
        """The signature of a change of an element that has a constant number, likewise."""
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

    def lower_inst(self, inst: Any) -> Any:
        """One statement."""
        if isinstance(inst, ir.StaticSetItem) and is_flat(self.typeof(inst.target.name)):
            return self.lower_setitem(inst.target, inst.index_var, inst.value, self.fndesc.calltypes[inst])
        return super().lower_inst(inst)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """One expression."""
        if expr.op == "static_getitem" and is_flat(self.typeof(expr.value.name)) and expr.index_var is not None:
            return self.lower_getitem(resty, expr, expr.value, expr.index_var, self.fndesc.calltypes[expr])
        return super().lower_expr(resty, expr)

    def alloca_lltype(self, name: str, lltype: Any, datamodel: Any = None) -> Any:
        """Room for a variable."""
        return cgutils.alloca_once(self.builder, lltype, name=name, zfill=False)

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        """An operator between two values."""
        signature = self.fndesc.calltypes[expr]
        operator = self.context.typing_context.resolve_value_type(op)
        known = KnownTypes.known.get((operator, tuple(map(plain, signature.args))))
        if known is None or expr.static_lhs is not ir.UNDEFINED or expr.static_rhs is not ir.UNDEFINED:
            return super().lower_binop(resty, expr, op)
        left, right = (self._cast_var(*side) for side in zip((expr.lhs, expr.rhs), known.args, strict=True))
        found = self.context.get_function(operator, known)(self.builder, (left, right))
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
        parts, place = self.loadvar(array.name), self._cast_var(index, types.intp if kind.signed else types.uintp)
        builder = self.builder
        if self._is_negative(index):
            place = builder.add(place, builder.extract_value(parts, [SHAPE, 0]))
        return builder.gep(builder.extract_value(parts, DATA), [place])

    def _is_negative(self, index: Any) -> bool:
        """Whether a variable is a constant below zero."""
        known = getattr(self.typeof(index.name), "literal_value", 0)
        return known < 0


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(NativeLowering):  # type: ignore[misc, unused-ignore]
    """Lowers a function."""

    _name = "kernel_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        """What writes the code."""
        return KernelLower


@register_pass(mutates_CFG=False, analysis_only=True)
class KernelLegalization(IRLegalization):  # type: ignore[misc, unused-ignore]
    """Says where variables end, if anybody counts references to arrays."""

    _name = "kernel_legalization"

    def run_pass(self, state: Any) -> bool:
        """Prepare a function for lowering."""
        if state.flags.nrt:
            return bool(super().run_pass(state))
        enforce_no_phis(state.func_ir)
        enforce_no_dels(state.func_ir)
        return False
