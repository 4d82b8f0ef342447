"""Avro object containers: framing, codecs, schemas, and decoding by columns."""
