"""How kernels call their parts: what a part cannot do to its caller is not looked for after each call.

Numba sets a return value to zero, makes room for an exception, tells five kinds of ends apart and looks for a `try`
around every call: a third of all code of kernels was that. Here a part writes an exception to where its caller's
caller looks for it, and a call is followed by one comparison.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core.errors import LoweringError

from weft.kernels.arrays_given import MODELS, has_array
from weft.kernels.numba_internals import (
    RETCODE_OK,
    CPUCallConv,
    CPUContext,
    Optional,
    Status,
    excinfo_ptr_t,
    make_function,
)
from weft.kernels.wrapping import KernelWrapper

NUMBAS = "numba."  # how modules are named whose functions are given arrays in another way than ours


def room_for(builder: Any, kind: Any, name: str = "") -> Any:
    """Room for a value of a function, with nothing in it."""
    with builder.goto_entry_block():
        return builder.alloca(kind, name=name)


class KernelCalls(CPUCallConv):  # type: ignore[misc, unused-ignore]
    """Numba's way to call, with less around it; what is called by it can be called by Numba's."""

    def call_function(self, builder: Any, callee: Any, resty: Any, argtys: Any, args: Any, attrs: Any = None) -> Any:
        """Call a compiled function: how it ended, and what it gave."""
        function = builder.function
        is_from_python = len(function.args) < 2 or function.args[1].type != excinfo_ptr_t.as_pointer()
        if is_from_python or attrs is not None or isinstance(resty, Optional):
            return super().call_function(builder, callee, resty, argtys, args, attrs)
        room = room_for(builder, self.get_return_type(resty).pointee)
        arguments = self._get_arg_packer(argtys).as_arguments(builder, args)
        code = builder.call(callee, [room, function.args[1], *arguments])
        failed = builder.icmp_signed("!=", code, RETCODE_OK)
        unknown = dict.fromkeys(set(Status._fields) - {"code", "is_error"})
        found = self.context.get_returned_value(builder, resty, builder.load(room))
        return Status(code=code, is_error=failed, **unknown), found

    def return_status_propagate(self, builder: Any, status: Any) -> None:
        """End as a function ended that was called."""
        if status.is_ok is None:
            self._return_errcode_raw(builder, status.code)
        else:
            super().return_status_propagate(builder, status)


class KernelContext(CPUContext):  # type: ignore[misc, unused-ignore]
    """What Numba knows of this machine, for kernels only."""

    @classmethod
    def like(cls, other: CPUContext) -> KernelContext:
        """One that shares all with another, but for what it does otherwise."""
        found = cls.__new__(cls)
        found.__dict__.update(other.__dict__)
        found.data_model_manager = MODELS
        return found

    @property
    def call_conv(self) -> KernelCalls:
        """How functions are called."""
        return KernelCalls(self)

    def declare_function(self, module: Any, fndesc: Any) -> Any:
        """Say that a function is elsewhere."""
        if fndesc.modname.startswith(NUMBAS) and any(map(has_array, fndesc.argtypes)):
            raise LoweringError(f"a kernel cannot give arrays to {fndesc.qualname}, which is Numba's")
        return super().declare_function(module, fndesc)

    def create_cpython_wrapper(self, library: Any, fndesc: Any, env: Any, call_helper: Any, release_gil: bool) -> None:
        """Write the function that Python calls."""
        module = self.create_module("wrapper")
        kind = self.call_conv.get_function_type(fndesc.restype, fndesc.argtypes)
        called = ir.Function(module, kind, fndesc.llvm_func_name)
        KernelWrapper(self, module, called, fndesc, env, call_helper, release_gil).build()
        library.add_ir_module(module)


class PartContext(KernelContext):
    """The same for parts, which have no address."""

    def get_executable(self, library: Any, fndesc: Any, env: Any) -> Any:
        """Return the placeholder of a part in Numba's lists of compiled functions."""
        return make_function(fndesc.lookup_module(), fndesc.qualname, "", 0, env, (library,))
