"""What holds for every test.

Examples of hypothesis have no deadline: how long one takes says more about the machine than
about the code. In CI they are the same in every run; elsewhere each run tries others.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
