"""The command ``kafka2011``. Sub-commands come from entry points, so this package imports no other."""
