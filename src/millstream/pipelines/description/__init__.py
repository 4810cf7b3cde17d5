"""What a pipeline is: source, steps and sinks as frozen models, and nothing that runs.

Written as YAML (`reader`) or in Python, a pipeline becomes the same `Pipeline`; two descriptions that say the same are
equal. Every element remembers where it was written, so that a mistake found later, even by Spark, can point there. An
option is declared once, here, with its meaning: validation, error messages and the docs' reference derive from it.
Nothing in this package imports Spark.
"""
