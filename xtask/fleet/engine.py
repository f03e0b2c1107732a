"""Folded stacks of a data set by an engine of others: python3 engine.py ENGINE URL

The queries are those of crates/fleet/sql.
"""
import pathlib
import runpy
import sys

engine, url = sys.argv[1:]
sql = pathlib.Path(__file__).parents[2] / "crates/fleet/sql"


def duckdb():
    import duckdb

    duckdb.execute(f"set variable url = '{url}'")
    for (line,) in duckdb.execute((sql / "duckdb.sql").read_text()).fetchall():
        print(line)


def polars():
    sys.argv = ["folded_polars.py", url]
    runpy.run_path(str(sql / "folded_polars.py"))


def chdb():
    import chdb

    query = (sql / "clickhouse.sql").read_text().replace("{url:String}", f"'{url}'")
    print(chdb.query(query, "TSVRaw"), end="")


def spark():
    from pyspark.sql import SparkSession

    # Two workers, each with a core and a gigabyte.
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    builder = builder.config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    session = builder.config("spark.ui.enabled", "false").getOrCreate()
    for table in ["samples", "stacks"]:
        session.read.parquet(f"{url}/{table}").createOrReplaceTempView(table)
    for row in session.sql((sql / "spark.sql").read_text()).toLocalIterator():
        print(row.folded)
    session.stop()


{"duckdb": duckdb, "polars": polars, "chdb": chdb, "spark": spark}[engine]()
