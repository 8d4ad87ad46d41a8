"""`python -m tiltrm.cli` is `tiltrm`."""

import sys

from tiltrm.cli.main import main

sys.exit(main())
