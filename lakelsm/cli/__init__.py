"""The command ``lakelsm``: `main` finds the verb, each verb is one module, and `report` prints the outcome."""
