"""The modern log, whatever is done to it in whatever order."""

from __future__ import annotations

from tests.property.since2011.machine import ModernLogMachine, quick

TestModernLog = ModernLogMachine.TestCase
TestModernLog.settings = quick
