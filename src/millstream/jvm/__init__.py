"""Java on this machine: find it, and fetch jars from Maven Central by name, once.

Whoever starts a Java program (the kafka engine, Spark, Cassandra, HDFS) declares the jars that it needs as a `JarSet`
and gets a folder of them. This package knows none of those programs.
"""
