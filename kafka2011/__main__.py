"""``python -m kafka2011`` is the command ``kafka2011``."""

from kafka2011.cli.main import main

main()
