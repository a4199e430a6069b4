"""The steps in which a kernel is compiled: those of Numba's that change anything in our kernels, and ours.

Between its steps Numba finds anew where each variable lives. Here that is found once, if references are counted.
"""

from __future__ import annotations

from typing import Any, ClassVar

from weft.kernels.lowering import KernelLower
from weft.kernels.numba_internals import (
    Lower,
    RewriteConstGetitems,
    RewriteConstRaises,
    RewriteConstSetitems,
    build_definitions,
    canonicalize_cfg,
    enforce_no_dels,
    enforce_no_phis,
    reconstruct_ssa,
    register_pass,
    typed_passes,
    untyped_passes,
)


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelProcessing(untyped_passes.IRProcessing):  # type: ignore[misc, unused-ignore]
    """Puts blocks in order; where variables live matters to generators only."""

    _name = "kernel_processing"

    def run_pass(self, state: Any) -> bool:
        """Prepare a function for the following passes."""
        state.func_ir.blocks = canonicalize_cfg(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class KernelRewrites(untyped_passes.GenericRewrites):  # type: ignore[misc, unused-ignore]
    """Finds constants: numbers of members of tuples and of elements, and what exceptions say."""

    _name = "kernel_rewrites"
    known: ClassVar = (RewriteConstGetitems, RewriteConstSetitems, RewriteConstRaises)

    def run_pass(self, state: Any) -> bool:
        """Rewrite each block."""
        for rewrite in (kind(state) for kind in self.known):
            for label, block in state.func_ir.blocks.items():
                if rewrite.match(state.func_ir, block, None, None):
                    state.func_ir.blocks[label] = rewrite.apply()
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelVariables(untyped_passes.ReconstructSSA):  # type: ignore[misc, unused-ignore]
    """Give each assignment a separate variable."""

    _name = "kernel_variables"

    def run_pass(self, state: Any) -> bool:
        """Rename variables."""
        state.func_ir = reconstruct_ssa(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelJoins(typed_passes.PreLowerStripPhis):  # type: ignore[misc, unused-ignore]
    """Makes one variable again where several assignments meet."""

    _name = "kernel_joins"

    def run_pass(self, state: Any) -> bool:
        """Rename variables; where they live is found when it is needed."""
        state.func_ir = self._strip_phi_nodes(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(typed_passes.NativeLowering):  # type: ignore[misc, unused-ignore]
    """Lowers a function."""

    _name = "kernel_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        """What writes the code."""
        return KernelLower


@register_pass(mutates_CFG=False, analysis_only=True)
class KernelLegalization(typed_passes.IRLegalization):  # type: ignore[misc, unused-ignore]
    """Says where variables end, if anybody counts references to arrays."""

    _name = "kernel_legalization"

    def run_pass(self, state: Any) -> bool:
        """Prepare a function for lowering."""
        if state.flags.nrt:
            return bool(super().run_pass(state))
        enforce_no_phis(state.func_ir)
        enforce_no_dels(state.func_ir)
        return False


PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    KernelProcessing,
    KernelRewrites,
    untyped_passes.InlineInlinables,
    KernelVariables,
    typed_passes.NopythonTypeInference,
    KernelJoins,
    KernelLegalization,
    KernelLowering,
    typed_passes.NoPythonBackend,
)
