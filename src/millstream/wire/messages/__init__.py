"""Kafka's messages as Python classes, one module for each API, written by `tools/generate_messages.py`.

Only names, types, versions and defaults live here; how they become bytes is `wire.codec`. Import the module of the API
you need: importing all of them at once would cost start-up time for nothing.
"""
