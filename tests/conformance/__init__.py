"""Runs cases of the format's behaviour on lakelsm: ``python -m tests.conformance --cases FILE``.

The README beside the cases describes their form. A case passes, fails, or is refused: it is refused only if
lakelsm raises UnsupportedFeatureError, which names a feature that is not built.
"""
