"""Run a command with the Java that Spark needs: the wheel's runtime, found and, where trimmed, completed by a shim.

The command takes this process's place, so that ``docker stop`` reaches it.
"""

import os
import sys
from pathlib import Path

from zk_registry.java import java_home_for_spark


def main(command: list[str]) -> None:
    """Set JAVA_HOME and become ``command``."""
    import pyspark

    os.environ["JAVA_HOME"] = str(java_home_for_spark())
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
