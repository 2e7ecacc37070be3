import sys

from functions.forwarder.main import main

sys.exit(main())
