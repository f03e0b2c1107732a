"""Folded stacks of a data set, for `prof report -i -`: python3 folded_polars.py URL

Conditions on date, service, host, time and event go where it says so.
"""
import sys

import polars as pl

url = sys.argv[1]
samples = pl.scan_parquet(f"{url}/samples/**/*.parquet", hive_partitioning=True)
stacks = pl.scan_parquet(f"{url}/stacks/**/*.parquet", hive_partitioning=True)
sums = (
    samples.filter(pl.col("event").str.starts_with("cpu-clock"))  # conditions
    .group_by("stack_id")
    .agg(pl.col("weight").sum())
)
best = stacks.sort("named", descending=True).unique("stack_id", keep="first", maintain_order=True)
name = pl.element().struct.field("function").str.replace_all(";", ":", literal=True)
folded = sums.join(best, on="stack_id").select(
    pl.format("{} {}", pl.col("frames").list.eval(name).list.join(";"), "weight")
)
for (line,) in folded.collect(engine="streaming").iter_rows():
    print(line)
