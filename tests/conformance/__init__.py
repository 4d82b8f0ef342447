"""Runs cases of the format's behaviour on lakelsm: ``python -m tests.conformance --cases FILE``.

The form of the cases is described in the README that lies beside them. A case passes, fails, or is refused:
refused only when lakelsm raises UnsupportedFeatureError, that is, names a part that it has not built.
"""
