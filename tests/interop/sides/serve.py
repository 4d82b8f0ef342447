"""The loop of an engine's process, imported before the engine starts.

Runs in that engine's own environment: nothing of lakelsm is here.
"""

import json
import os
import sys
import traceback

#: What a JVM gets that soon ends: what the optimising compiler takes it would not give back.
SHORT_LIFE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# From here on, whatever the engine prints goes to the standard error: the standard output has the answers alone.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def serve(operations):
    """Answer requests ``[operation, arguments]``, a line each, until the input ends."""
    for line in sys.stdin:
        name, arguments = json.loads(line)
        try:
            answer = {"result": operations[name](**arguments)}
        except BaseException:  # noqa: BLE001 -- the other process gets every failure
            answer = {"error": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
