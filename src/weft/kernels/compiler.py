"""How Numba compiles our kernels: parts are optimised once, inside the kernels that call them.

By default, Numba optimises each part, generates unused machine code for it, and optimises it again in every kernel.
`passes.py` has the steps, `lowering.py` writes the code. Only our dispatchers are compiled this way; functions of the
user are not touched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm

from weft.kernels.calling import KernelContext, PartContext
from weft.kernels.lowering import KnownTypes
from weft.kernels.numba_internals import CompilerBase, JITCodeLibrary, PassManager
from weft.kernels.passes import PASSES

MANY_PARTS = 12  # a kernel of so many goes from branch to branch: unrolling its loops makes it longer, not quicker
CALLED_BY_PYTHON = "_ZN7cpython"  # how names of functions begin that take Python's objects apart, once in a call


class Code(JITCodeLibrary):  # type: ignore[misc, unused-ignore]
    """Code that is optimised at the end, when all of it is there."""

    counts = False  # whether it counts references to arrays: such code is put in order first, or the counting stays

    def add_llvm_module(self, module: Any) -> None:
        """Take code."""
        if self.counts:
            module.data_layout = self._codegen._data_layout
            passes, builder = self._codegen._function_pass_manager()
            for function in module.functions:
                if not function.is_declaration:
                    passes.run(function, builder)
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

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        """What is kept of a kernel: machine code, and the names that are in it. Nobody links a kernel, so no more."""
        if self._compiled_object is None:  # Ctrl-C came when LLVM handed the machine code over, and was lost in there
            raise KeyboardInterrupt
        names = (function.name for function in self._final_module.functions if not function.is_declaration)
        known = llvm.parse_assembly("".join(f'@"{name}" = global i8 0\n' for name in names))
        return self.name, "object", (self._get_compiled_object(), known.as_bitcode())

    def _optimize_final_module(self) -> None:
        """Optimise all at once, unless references have to be paired first; what Python calls stays as it is."""
        for function in self._final_module.functions:
            if function.name.startswith(CALLED_BY_PYTHON) and not function.is_declaration:
                function.add_function_attribute("noinline")
                function.add_function_attribute("optnone")
        if self.counts:
            cheap = {"loop_vectorize": False, "slp_vectorize": False, "opt": 0, "cost": "cheap"}
            passes, builder = self._codegen._module_pass_manager(**cheap)
            passes.run(self._final_module, builder)
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization, options.slp_vectorization = True, False
        options.loop_unrolling = len(self._linking_libraries) < MANY_PARTS
        builder = llvm.create_pass_builder(self._codegen._tm, options)
        passes = builder.getModulePassManager()
        passes.add_refprune_pass()
        passes.run(self._final_module, builder)


class KernelCompiler(CompilerBase):  # type: ignore[misc, unused-ignore]
    """Compiles a kernel."""

    code: type[Code] = KernelCode
    context: type[KernelContext] = KernelContext

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
        self.state.targetctx = self.context.like(self.state.targetctx)
        self.state.library = self.code(self.state.targetctx.codegen(), function.__qualname__)
        self.state.library.counts = self.state.flags.nrt
        self.state.library.enable_object_caching()
        return super().compile_extra(function)


class PartCompiler(KernelCompiler):
    """Compiles a part of kernels, as far as the kernels need it."""

    code = PartCode
    context = PartContext
