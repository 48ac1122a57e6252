"""Run the command line as ``python -m tallystick``."""

import sys

from tallystick.cli.main import main

sys.exit(main())
