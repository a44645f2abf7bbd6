"""Everything that operations take and give, and what events tell: one class for each schema of the document."""

from ._generated.models import *  # noqa: F403
from ._generated.models import __all__ as __all__
