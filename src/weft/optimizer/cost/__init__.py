"""What it costs to run patterns: rates and selectivities in, work per second of event time out."""

from weft.optimizer.cost.known import resolve_statistics
from weft.optimizer.cost.model import Costs, cost_of, costs_of, profile_of

__all__ = ["Costs", "cost_of", "costs_of", "profile_of", "resolve_statistics"]
