"""`python -m tiltrm` is `tiltrm`."""

import sys

from tiltrm_entry import main

sys.exit(main())
