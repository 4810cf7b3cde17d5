"""Millstream beside Apache Kafka and others on this machine: `python -m bench`, `make bench`; see bench/README.md.

- `systems`, `peers`: the servers that are measured: started, killed, and what they cost in CPU and memory.
- `loads`, `raw`: the clients that put the load on them.
- `rows`: what is measured, and what the goal is.
- `compare`, `growth`: how: in turns, round after round; and over more and more partitions and connections.
- `report`, `charts`: what comes out.

`pipelines.py` is a benchmark of its own, for what runs on Spark. Nothing here is part of the installed package.
"""
