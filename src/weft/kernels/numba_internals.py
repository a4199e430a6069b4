"""The parts of Numba that kernels use although its documentation does not promise to keep them: imported here only.

Importing kernels fails with a readable message if a part is missing. `MEMBERS` lists the members of Numba's classes
that kernels use or override; a test compares it with the Numba that is installed. `pyproject.toml` has the supported
releases.
"""

from __future__ import annotations

import numba

try:
    from numba._dynfunc import make_function
    from numba.core import cgutils, event, ir, typed_passes, untyped_passes
    from numba.core.base import BaseContext
    from numba.core.caching import _Cache as FunctionCache
    from numba.core.callconv import RETCODE_OK, CPUCallConv, Status, excinfo_ptr_t
    from numba.core.callwrapper import PyCallWrapper
    from numba.core.codegen import CPUCodegen, JITCodeLibrary
    from numba.core.compiler import CompilerBase, CompileResult
    from numba.core.compiler_machinery import PassManager, register_pass
    from numba.core.cpu import CPUContext
    from numba.core.datamodel import default_manager
    from numba.core.datamodel.models import ArrayModel
    from numba.core.dispatcher import Dispatcher
    from numba.core.ir_utils import build_definitions, enforce_no_dels, enforce_no_phis, get_definition, guard
    from numba.core.lowering import Lower
    from numba.core.rewrites.static_getitem import RewriteConstGetitems, RewriteConstSetitems
    from numba.core.rewrites.static_raise import RewriteConstRaises
    from numba.core.runtime import rtsys
    from numba.core.serialize import dumps
    from numba.core.ssa import reconstruct_ssa
    from numba.core.transforms import canonicalize_cfg
    from numba.core.types import (  # type: ignore[attr-defined, unused-ignore]
        Array,
        BaseTuple,
        Module,
        Optional,
        RangeIteratorType,
        RangeType,
        pyobject,
    )
    from numba.core.typing import signature as typed
    from numba.core.typing.context import Context
    from numba.np.arrayobj import populate_array
    from numba.np.numpy_support import as_dtype, from_dtype
except ImportError as problem:
    raise ImportError(
        f"weft does not support Numba {numba.__version__}: {problem}. "
        "`pip install --upgrade --force-reinstall weft-cep` installs a release that it supports"
    ) from problem

__all__ = [
    "MEMBERS",
    "RETCODE_OK",
    "Array",
    "ArrayModel",
    "BaseTuple",
    "CPUCallConv",
    "CPUContext",
    "CompileResult",
    "CompilerBase",
    "FunctionCache",
    "JITCodeLibrary",
    "Lower",
    "Module",
    "Optional",
    "PassManager",
    "PyCallWrapper",
    "RangeIteratorType",
    "RangeType",
    "RewriteConstGetitems",
    "RewriteConstRaises",
    "RewriteConstSetitems",
    "Status",
    "as_dtype",
    "build_definitions",
    "canonicalize_cfg",
    "cgutils",
    "default_manager",
    "dumps",
    "enforce_no_dels",
    "enforce_no_phis",
    "event",
    "excinfo_ptr_t",
    "from_dtype",
    "get_definition",
    "guard",
    "ir",
    "make_function",
    "missing_members",
    "populate_array",
    "pyobject",
    "reconstruct_ssa",
    "register_pass",
    "rtsys",
    "typed",
    "typed_passes",
    "untyped_passes",
]

MEMBERS: dict[type, tuple[str, ...]] = {
    CompileResult: ("_rebuild", "_reduce"),
    CompilerBase: ("compile_extra", "define_pipelines"),
    CPUCodegen: ("_data_layout", "_function_pass_manager", "_module_pass_manager", "_tm", "magic_tuple"),
    ArrayModel: ("_fe_type", "_models", "as_argument", "from_argument", "get_argument_type", "get_field_position"),
    CPUCallConv: ("_get_arg_packer", "_return_errcode_raw", "call_function", "return_status_propagate"),
    CPUContext: ("call_conv", "create_cpython_wrapper", "declare_function", "get_executable"),
    PyCallWrapper: ("_simplified_return_type", "build", "build_wrapper", "get_env"),
    BaseContext: ("cast", "get_function", "get_value_type", "make_array", "nrt", "pack_value", "unpack_value"),
    Context: ("resolve_function_type", "resolve_setitem", "resolve_static_getitem", "resolve_static_setitem"),
    Dispatcher: ("_cache", "compile", "targetctx"),
    FunctionCache: ("cache_path", "disable", "enable", "flush", "load_overload", "save_overload"),
    JITCodeLibrary: (
        *("_codegen", "_compiled_object", "_final_module", "_finalized", "_linking_libraries", "_shared_module"),
        *("_get_compiled_object", "_optimize_final_module", "add_llvm_module", "enable_object_caching", "finalize"),
        *("has_dynamic_globals", "serialize_using_object_code"),
    ),
    Lower: (
        *("_alloca_var", "_cast_var", "_singly_assigned_vars", "alloca_lltype", "getvar", "loadvar", "storevar"),
        *("lower_assign", "lower_binop", "lower_call", "lower_expr", "lower_getitem", "lower_inst", "lower_setitem"),
    ),
    typed_passes.IRLegalization: ("run_pass",),
    typed_passes.NativeLowering: ("lowering_class",),
    typed_passes.PreLowerStripPhis: ("_strip_phi_nodes", "run_pass"),
    untyped_passes.GenericRewrites: ("run_pass",),
    untyped_passes.IRProcessing: ("run_pass",),
    untyped_passes.ReconstructSSA: ("run_pass",),
}


def missing_members() -> list[str]:
    """List the members that kernels need and the installed Numba lacks."""
    return [
        f"{kind.__module__}.{kind.__name__}.{name}"
        for kind, names in MEMBERS.items()
        for name in names
        if not hasattr(kind, name) and not _is_set_by_methods(kind, name)
    ]


def _is_set_by_methods(kind: type, name: str) -> bool:
    """Whether a method of a class mentions an attribute that each of its objects has."""
    methods = (method for parent in kind.__mro__ for method in vars(parent).values())
    return any(name in method.__code__.co_names for method in methods if hasattr(method, "__code__"))
