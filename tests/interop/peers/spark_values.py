# SPDX-License-Identifier: Apache-2.0
"""For what is run by Spark's Python: a session, and its rows spelled as lib/rows.py spells them."""
import datetime as dt
import decimal
import math
import struct

from pyspark.sql import SparkSession

EXACT = decimal.Context(prec=40)


def session(jars, warehouse, more):
    """A session of two threads whose catalog c is a folder of tables."""
    options = {
        "spark.jars": jars, "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "1", "spark.default.parallelism": "1", "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC", "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.c": "org.apache.iceberg.spark.SparkCatalog", "spark.sql.catalog.c.type": "hadoop",
        "spark.sql.catalog.c.warehouse": warehouse, "spark.sql.catalog.c.cache-enabled": "false",
        "spark.sql.warehouse.dir": warehouse, "spark.sql.timestampType": "TIMESTAMP_LTZ", **more}
    builder = SparkSession.builder.master("local[2]").appName("interop")
    for key, value in options.items():
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def clock(moment):
    micros = ((moment.hour * 60 + moment.minute) * 60 + moment.second) * 10**6 + moment.microsecond
    seconds, fraction = divmod(micros, 10**6)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}"
    if seconds % 60 or fraction:
        text += f":{seconds % 60:02}"
    if fraction:
        text += f".{fraction:06}"
        text = text[:-3] if text.endswith("000") else text
    return text


def shortest(value):
    """The shortest decimal number that is this value in 32 bits."""
    for digits in range(1, 10):
        text = float(f"{value:.{digits}g}")
        try:
            if struct.unpack("f", struct.pack("f", text))[0] == value:
                return text
        except OverflowError:
            continue
    return value


def spell(value, kind):
    """kind: Spark's type, for what Python's value does not say."""
    if value is None:
        return None
    name = kind.typeName()
    if name == "struct":
        return {field.name: spell(value[i], field.dataType) for i, field in enumerate(kind.fields)}
    if name == "array":
        return [spell(item, kind.elementType) for item in value]
    if name == "map":
        keys = sorted(value) if kind.keyType.typeName() == "string" else value  # Java's maps come in any order
        return [[spell(k, kind.keyType), spell(value[k], kind.valueType)] for k in keys]
    if name in ("timestamp", "timestamp_ntz"):
        return f"{value.year:04}-{value.month:02}-{value.day:02}T{clock(value)}{'Z' if name == 'timestamp' else ''}"
    if isinstance(value, dt.date):
        return f"{value.year:04}-{value.month:02}-{value.day:02}"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if name == "float":
        return shortest(value)
    if isinstance(value, decimal.Decimal):
        return format(EXACT.quantize(value, decimal.Decimal((0, (1,), -kind.scale))), "f")
    if isinstance(value, (bytes, bytearray)):
        return "0x" + bytes(value).hex()
    return value


def rows(frame):
    return [spell(row, frame.schema) for row in frame.collect()]
