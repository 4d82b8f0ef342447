"""Java Paimon's core library as a peer: a JVM that Spark's launcher starts with its jars, without a Spark session.

Arguments: the Maven coordinate of paimon-bundle, the directory for jars.
"""

import json
import sys
from pathlib import Path

from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway
from serve import SHORT_LIFE, serve


def _start(coordinate, jars):
    conf = SparkConf(loadDefaults=False)
    conf.set("spark.jars.packages", coordinate).set("spark.jars.ivy", jars).set("spark.driver.memory", "1g")
    conf.set("spark.driver.extraJavaOptions", SHORT_LIFE)
    jvm = launch_gateway(conf).jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setTargetVersion(8)
    compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
    compiler.cook((Path(__file__).parent / "JavaPaimonSide.java").read_text())
    return compiler.getClassLoader().loadClass("JavaPaimonSide").newInstance()


_java = _start(*sys.argv[1:])

serve(
    {
        "ready": lambda: True,
        "create": lambda path, schema: _java.create(path, schema),
        "alter": lambda path, changes: _java.alter(path, json.dumps(changes)),
        "write": lambda path, batches, options, full: _java.write(path, json.dumps(batches), json.dumps(options), full),
        "overwrite": lambda path, batches, partition, options: _java.overwrite(
            path, json.dumps(batches), json.dumps(partition), json.dumps(options)
        ),
        "branch": lambda path, verb, name, tag: _java.branch(path, verb, name, tag),
        "version": lambda path, verb, name, number, seconds: _java.version(path, verb, name, number, seconds),
        "compact": lambda path, full: _java.compact(path, full),
        "read": lambda path, where: json.loads(_java.read(path, json.dumps(where))),
        "ask": lambda path, questions: json.loads(_java.ask(path, json.dumps(questions))),
        "changes": lambda path, after, upto, mode: json.loads(_java.changes(path, after, upto, mode)),
        "system": lambda path, name: json.loads(_java.system(path, name)),
        "stream": lambda path, first: json.loads(_java.stream(path, first)),
        "compacted_rows": lambda types, rows: json.loads(_java.compactedRows(json.dumps(types), json.dumps(rows))),
        "write_lookup_file": lambda file, keys, values, rows, form: _java.writeLookupFile(
            file, json.dumps(keys), json.dumps(values), json.dumps(rows), json.dumps(form)
        ),
        "read_lookup_file": lambda file, keys, values, asked, form: json.loads(
            _java.readLookupFile(file, json.dumps(keys), json.dumps(values), json.dumps(asked), json.dumps(form))
        ),
    }
)
