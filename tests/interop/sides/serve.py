"""The request loop of an engine's process, imported before the engine starts.

It runs in the environment of that engine, which does not have lakelsm.
"""

import json
import os
import sys
import traceback

#: Flags for a JVM that ends soon: the time of the optimising compiler would not pay off.
SHORT_LIFE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"

# Redirect all output of the engine to standard error: standard output has only answers.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def serve(operations):
    """Answer requests ``[operation, arguments]``, one a line, until the input ends."""
    for line in sys.stdin:
        name, arguments = json.loads(line)
        try:
            answer = {"result": operations[name](**arguments)}
        except BaseException:  # noqa: BLE001 -- the other process gets every failure
            answer = {"error": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
