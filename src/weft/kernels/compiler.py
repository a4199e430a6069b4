"""How Numba compiles our kernels: parts are optimised once, inside the kernels that call them.

Numba by itself optimises each part, makes machine code of it that nobody calls, and optimises it again in every kernel.
Only our dispatchers are compiled this way; functions of the user are not touched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import llvmlite.binding as llvm
from numba import _dynfunc
from numba.core import typed_passes, types, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager

PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.IRProcessing,
    untyped_passes.GenericRewrites,
    untyped_passes.InlineInlinables,
    untyped_passes.ReconstructSSA,
    typed_passes.NopythonTypeInference,
    typed_passes.PreLowerStripPhis,
    typed_passes.IRLegalization,
    typed_passes.AnnotateTypes,
    typed_passes.NativeLowering,
    typed_passes.NoPythonBackend,
)  # those of Numba's that change anything in our kernels


class Code(JITCodeLibrary):  # type: ignore[misc, unused-ignore]
    """Code that is optimised at the end, when all of it is there."""

    counts = False  # whether it counts references to arrays: such code is put in order first, or the counting stays

    def add_llvm_module(self, module: Any) -> None:
        """Take code."""
        if self.counts:
            self._optimize_functions(module)
        self._final_module.link_in(module)


class PartCode(Code):
    """The code of a part: it has no address, and is only linked into kernels."""

    def finalize(self) -> None:
        """Any number of kernels may contain the part, and may leave it out where they have inlined it."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = "linkonce_odr"
        self._shared_module = self._final_module
        self._finalized = True


class KernelCode(Code):
    """The code of a kernel, with all parts that it is made of."""

    def finalize(self) -> None:
        """Link the parts, and the parts of parts; optimise; make machine code."""
        for library in self._linking_libraries:
            if isinstance(library, PartCode):
                self._linking_libraries += (
                    inner for inner in library._linking_libraries if inner not in self._linking_libraries
                )
        super().finalize()


def _without_address(library: Any, description: Any, env: Any) -> Any:
    """What stands for a part in Numba's lists of compiled functions."""
    return _dynfunc.make_function(description.lookup_module(), description.qualname, "", 0, env, (library,))


class KnownTypes:
    """Numba's types of calls, found once for numbers: it looks through dozens of ways to add for every `+`."""

    known: ClassVar[dict[object, Any]] = {}

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, args: Any, named: Any) -> Any:
        """The signature of a call."""
        plain = tuple(getattr(argument, "literal_type", argument) for argument in args)
        if named or not all(isinstance(argument, (types.Number, types.Boolean)) for argument in plain):
            return self._context.resolve_function_type(function, args, named)
        if isinstance(function, types.Dispatcher):
            return self._context.resolve_function_type(function, args, named)
        if (function, plain) not in self.known:
            self.known[function, plain] = self._context.resolve_function_type(function, args, named)
        return self.known[function, plain]


class KernelCompiler(CompilerBase):  # type: ignore[misc, unused-ignore]
    """Compiles a kernel."""

    code: type[Code] = KernelCode

    def define_pipelines(self) -> list[PassManager]:
        """What Numba does, without what no kernel of ours needs."""
        passes = PassManager("kernel")
        for one in PASSES:
            passes.add_pass(one, one.__name__)
        passes.finalize()
        return [passes]

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        """Compile a Python function."""
        self.state.typingctx = KnownTypes(self.state.typingctx)
        self.state.library = self.code(self.state.targetctx.codegen(), function.__qualname__)
        self.state.library.counts = self.state.flags.nrt
        self.state.library.enable_object_caching()
        return super().compile_extra(function)


class PartCompiler(KernelCompiler):
    """Compiles a part of kernels, as far as the kernels need it."""

    code = PartCode

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        """Compile a Python function to what is linked into kernels."""
        self.state.targetctx = self.state.targetctx.subtarget(get_executable=_without_address)
        return super().compile_extra(function)
