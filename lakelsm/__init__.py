"""lakelsm: LSM primary-key tables in Apache Paimon's format, as a Spark-native engine in Python."""
