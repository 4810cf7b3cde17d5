"""What a look-up asks: stores behind one interface, and what is remembered of their answers.

- `store`: the interface. A store that is asked (`Store`: SQL, Redis) is asked from Spark's workers, key by key; one
  that can be read whole (memory, a file) becomes a table that Spark joins with.
- `asking`: a store, a cache before it, and the rule for when it is away; `cache`, `texts`: what it needs for that.

How the answers come to the rows is in `steps.lookup`. What runs in workers imports neither Spark nor the description.
"""
