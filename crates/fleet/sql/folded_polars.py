"""Folded stacks of a data set, for `prof report -i -`: python3 folded_polars.py URL [EVENT]

Without EVENT, of the event with the most samples. Conditions on date, service, host and time go
where it says so.
"""
import sys

import polars as pl


def table(name, folders):
    # Polars would take the hosts 007 and 7 for one number.
    schema = {folder: pl.String for folder in folders}
    files = f"{url}/{name}/**/*.parquet"
    return pl.scan_parquet(files, hive_schema=schema, try_parse_hive_dates=False)


url, *event = sys.argv[1:]
samples = table("samples", ["date", "service", "host"])
stacks = table("stacks", ["date", "service"])
if not event:
    counts = samples.group_by("event").agg(pl.col("count").sum())
    counts = counts.sort("count", "event", descending=[True, False]).head(1)
    event = counts.collect(engine="streaming")["event"].to_list()
sums = (
    samples.filter(pl.col("event").is_in(event))  # conditions
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
