"""The command line ``lakelsm``: main finds the verb, each verb is a file, report prints."""
