"""Six graded labs: write the paper's parts yourself, and be judged by tests you see and tests you do not.

``kafka2011 lab list`` names them, ``kafka2011 lab start 1`` begins one. docs/teaching.md: how to run them for a class.
"""
