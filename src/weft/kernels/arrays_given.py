"""How kernels and their parts are given arrays: by three words each, where Numba gives seven.

Kernels have up to a hundred arrays, and hand many of them to their parts: what is the same for all arrays of a kind
is not handed on.
"""

from __future__ import annotations

from typing import Any

from weft.kernels.numba_internals import Array, ArrayModel, BaseTuple, as_dtype, default_manager


class ArrayGiven(ArrayModel):  # type: ignore[misc, unused-ignore]
    """An array without gaps as an argument: who keeps it, where it begins, how long it is. Its kind says the rest."""

    given = ("meminfo", "data", "nitems")

    def get_argument_type(self) -> tuple[Any, ...]:
        """What is given of the array."""
        return tuple(self._model_of(name).get_argument_type() for name in self.given)

    def as_argument(self, builder: Any, value: Any) -> tuple[Any, ...]:
        """Give the array."""
        return tuple(self._model_of(name).as_argument(builder, self.get(builder, value, name)) for name in self.given)

    def from_argument(self, builder: Any, value: tuple[Any, ...]) -> Any:
        """Take the array."""
        known = dict(zip(self.given, value, strict=True))
        found = self.get_value_type()(None)
        for name, part in known.items():
            found = self.set(builder, found, self._model_of(name).from_argument(builder, part), name)
        size = known["nitems"].type(as_dtype(self._fe_type.dtype).itemsize)
        found = self.set(builder, found, size, "itemsize")
        found = builder.insert_value(found, known["nitems"], (self.get_field_position("shape"), 0))
        return builder.insert_value(found, size, (self.get_field_position("strides"), 0))

    def _model_of(self, name: str) -> Any:
        return self._models[self.get_field_position(name)]


def has_array(kind: Any) -> bool:
    """Whether an array is given with values of a kind."""
    return isinstance(kind, Array) or (isinstance(kind, BaseTuple) and any(map(has_array, kind)))


def _array_model(manager: Any, kind: Array) -> Any:
    return (ArrayGiven if kind.ndim == 1 and kind.layout == "C" else ArrayModel)(manager, kind)


MODELS = default_manager.copy()  # what values are made of
MODELS.register(Array, _array_model)
