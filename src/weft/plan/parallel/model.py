"""Models of the number of tasks a rate requires (Step, chapter 6), with constants by kind of component.

`step2012` has the document's constants; `weft bench calibrate` fits them to this machine and writes them to a file.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from weft.errors import InputError
from weft.plan.parallel.rates import Kind

FILE = "model.json"
USUAL_WINDOW = 5000  # ticks, for which constants of `next` are


@dataclass(frozen=True)
class TaskModel:
    """Tasks for a rate: `linear` a*rate + b, `exponential` a*exp(rate*b), or by the `replication` law.

    By that law a task is busy for a*(R + S/P) + b*R*S/P of a second, with R events that all tasks get and S shared out.
    One task is enough for `capacity` events (None: half of what two tasks take). A larger window makes
    an event dearer by wa*window + wb, against that of the usual one.
    """

    shape: Literal["linear", "exponential", "replication"]
    a: float
    b: float
    capacity: float | None = None
    most: int | None = None
    wa: float = 0.0
    wb: float = 0.0

    def scaled(self, rate: float, window: int | None) -> float:
        """The rate, as much higher as a window makes each event dearer than the usual one does."""
        if window is None or not self.wa:
            return rate
        return rate * (self.wa * window + self.wb) / (self.wa * USUAL_WINDOW + self.wb)

    def tasks(self, rate: float, margin: float, window: int | None = None, replicated: float = 0.0) -> float:
        """The number of tasks, not rounded; never below nothing."""
        scaled = self.scaled(rate, window)
        share = scaled / rate if rate else 1.0
        match self.shape:
            case "linear":
                found = self.a * margin * scaled + self.b
            case "exponential":
                found = self.a * math.exp(min(margin * scaled * self.b, 700.0))
            case "replication":
                found = self._by_law(replicated, rate - replicated, margin * share)
        return max(0.0, found if self.most is None else min(found, self.most))

    def _by_law(self, copied: float, shared: float, margin: float) -> float:
        left = 1 / margin - self.a * copied
        if left <= 0:
            return math.inf
        return (self.a * shared + self.b * copied * shared) / left

    def one_task_takes(self, margin: float) -> float:
        """The greatest rate, at the usual window, for which one task is enough."""
        if self.capacity is not None:
            return self.capacity
        match self.shape:
            case "linear":
                return (1 - self.b) / (self.a * margin) if self.a else math.inf
            case "exponential":
                return math.log(2 / self.a) / (margin * self.b) / 2
        return 1 / (self.a * margin)


@dataclass(frozen=True)
class Model:
    """Forms by kind of component; `ratio` is how much cheaper a replicated event is to send than one that is dealt."""

    name: str
    forms: Mapping[Kind, TaskModel]
    ratio: float
    margin: float = 1.1
    cores: int = 0
    date: str = ""
    fits: Mapping[str, float] = field(default_factory=dict)  # how far points are from the forms, as a part of them

    def form(self, kind: Kind) -> TaskModel | None:
        """The form of a kind; of one that the document does not have, that of a projection. None: it needs no task."""
        if kind == "union":
            return None
        return self.forms.get(kind, self.forms["projection"])

    def write(self, path: Path) -> None:
        """Write it to a file that `read` reads."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")
        except OSError as problem:
            raise InputError(f"cannot write the model to {path}: {problem.strerror or problem}") from None

    @staticmethod
    def read(path: Path) -> Model:
        """The model of a file."""
        try:
            text = json.loads(path.read_text(encoding="utf-8"))
            forms = {kind: TaskModel(**form) for kind, form in text.pop("forms").items()}
            model = Model(forms=forms, **text)
            model.forms["projection"]  # every model has one
        except OSError as problem:
            raise InputError(f"cannot read the model {path}: {problem.strerror or problem}") from None
        except (ValueError, TypeError, KeyError, AttributeError) as problem:
            raise InputError(f"{path} is no model as `weft bench calibrate` writes it ({problem})") from None
        return model


ONE_TASK = TaskModel("linear", 0.0, 1.0)  # whatever the rate
STEP2012 = Model(
    "step2012",
    {
        "source": TaskModel("linear", 1.427e-06, -0.6818),
        "projection": TaskModel("linear", 5.448e-06, -0.9008),
        "exception": TaskModel("linear", 7.748e-06, -1.353),
        "conjunction": TaskModel("exponential", 1.08, 1.829e-05),
        "greedy next": TaskModel("exponential", 1.087, 4.325e-06, wa=1.381e-09, wb=1.685e-05),
        "any next": TaskModel("exponential", 0.6142, 1.36e-05),
        "any iteration": TaskModel("linear", 1.4113e-05, -0.54603, most=7),
        "greedy iteration": ONE_TASK,
    },
    ratio=2.058,
)
# What one task of each kind took in a second on a busy machine, as `weft bench calibrate` measured it at a twentieth of
# its size: where nobody has calibrated. Tasks are taken to add up.
USUAL_RATES: dict[Kind, float] = {
    "source": 5.2e6,
    "projection": 5.6e5,
    "exception": 2.8e6,
    "conjunction": 1.7e6,
    "greedy next": 2.4e6,
    "any next": 3.7e5,
    "any iteration": 9.0e3,
    "automaton": 9.5e5,
    "situation": 8.7e6,
    "rules": 5.8e5,
}
USUAL = Model(
    "usual",
    {kind: TaskModel("linear", 1 / rate, 0.0, rate) for kind, rate in USUAL_RATES.items()}
    | {"greedy iteration": ONE_TASK},
    ratio=2.4,
)
NAMED = {model.name: model for model in (STEP2012, USUAL)}


def model_file() -> Path:
    """Where this machine's model is kept: in the folder that WEFT_CACHE names, or in the user's cache."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(os.environ.get("WEFT_CACHE") or Path(home) / "weft") / FILE


def model_of(name: str | None = None) -> Model:
    """A model by name, or of a file; without a name this machine's, if it was calibrated, or the usual one."""
    if name is not None:
        return NAMED[name] if name in NAMED else Model.read(Path(name))
    path = model_file()
    return Model.read(path) if path.exists() else USUAL
