"""Places that events come from and matches go to, by URI: one registry for all commands and languages."""

from weft.connectors.adapters.registry import Adapter, Incoming, Role, adapter_for, known_adapters, register
from weft.connectors.uris import Uri, as_uri

__all__ = ["Adapter", "Incoming", "Role", "Uri", "adapter_for", "as_uri", "known_adapters", "register"]
