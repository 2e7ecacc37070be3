import sys

from functions.cli.main import main

sys.exit(main())
