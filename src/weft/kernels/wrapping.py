"""How Python calls kernels: what its objects hold is taken out by one small function for each kind of value.

Numba writes the taking out of every array, with its messages, at every place: for kernels of a hundred arrays in
named tuples that was half of all machine code.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from weft.kernels.numba_internals import BaseTuple, PyCallWrapper, cgutils, pyobject


class KernelWrapper(PyCallWrapper):  # type: ignore[misc, unused-ignore]
    """The function of Python around one kernel."""

    def build_wrapper(self, api: Any, builder: Any, closure: Any, args: Any, kws: Any) -> None:
        """Take the arguments, call the kernel without the GIL, give back what it gave."""
        self.takers: dict[Any, Any] = {}
        kinds = self.fndesc.argtypes
        objects = [api.alloca_obj() for _ in kinds]
        is_given = api.unpack_tuple(args, self.fndesc.qualname, len(kinds), len(kinds), *objects)
        with cgutils.if_unlikely(builder, cgutils.is_null(builder, is_given)):
            builder.ret(api.get_null_object())
        environment = self.get_env(api, builder)
        rooms = [cgutils.alloca_once(builder, self.context.get_value_type(kind), zfill=True) for kind in kinds]
        failed = cgutils.false_bit
        for kind, one, room in zip(kinds, objects, rooms, strict=True):
            failed = builder.or_(failed, self._take(api, builder, kind, builder.load(one), room))
        drop = self._dropper(rooms) if self.context.enable_nrt else None
        with cgutils.if_unlikely(builder, failed):
            if drop is not None:
                builder.call(drop, rooms)
            with builder.if_then(cgutils.is_null(builder, api.err_occurred())):
                api.err_set_string("PyExc_TypeError", "a tuple has more members than the kernel reads")
            builder.ret(api.get_null_object())
        thread = api.save_thread()
        values = [builder.load(room) for room in rooms]
        status, found = self.context.call_conv.call_function(
            builder, self.func, self.fndesc.restype, kinds, values, attrs=("noinline",)
        )
        api.restore_thread(thread)
        if drop is not None:
            builder.call(drop, rooms)
        with builder.if_then(status.is_ok, likely=True):
            with builder.if_then(status.is_none):
                api.return_none()
            builder.ret(api.from_native_return(self._simplified_return_type(), found, environment))
        self.context.call_conv.raise_error(builder, api, status)
        builder.ret(api.get_null_object())

    def _take(self, api: Any, builder: Any, kind: Any, given: Any, room: Any) -> Any:
        """Write what an object of Python's holds to where the kernel reads it: whether that failed."""
        if not isinstance(kind, BaseTuple):
            return builder.call(self._taker(kind), [given, room])
        size = api.tuple_size(given)
        failed = builder.icmp_signed("!=", size, size.type(len(kind)))
        for at, member in enumerate(kind):
            place = cgutils.gep_inbounds(builder, room, 0, at)
            failed = builder.or_(failed, self._take(api, builder, member, api.tuple_getitem(given, at), place))
        return failed

    def _taker(self, kind: Any) -> Any:
        """The function that takes a value of a kind; it says whether it failed."""
        if kind not in self.takers:
            item, room = self.context.get_argument_type(pyobject), self.context.get_value_type(kind).as_pointer()
            function = self._inner(f"take {kind}", cgutils.bool_t, [item, room])
            builder = ir.IRBuilder(function.append_basic_block())
            with cgutils.if_unlikely(builder, cgutils.is_null(builder, function.args[0])):
                builder.ret(cgutils.true_bit)
            taken = self.context.get_python_api(builder).to_native_value(kind, function.args[0])
            builder.store(taken.value, function.args[1])
            builder.ret(taken.is_error)
            self.takers[kind] = function
        return self.takers[kind]

    def _dropper(self, rooms: list[Any]) -> Any:
        """The function that gives back the references to arrays that were taken, those of arguments that failed too."""
        function = self._inner("drop", ir.VoidType(), [room.type for room in rooms])
        builder = ir.IRBuilder(function.append_basic_block())
        for kind, room in zip(self.fndesc.argtypes, function.args, strict=True):
            self.context.nrt.decref(builder, kind, builder.load(room))
        builder.ret_void()
        return function

    def _inner(self, name: str, gives: Any, takes: list[Any]) -> Any:
        function = ir.Function(self.module, ir.FunctionType(gives, takes), name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        return function
