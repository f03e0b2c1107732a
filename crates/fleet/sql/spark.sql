-- Folded stacks of a data set, for `prof report -i -`; the views `samples` and `stacks` are
--   spark.read.parquet(URL + "/samples").createOrReplaceTempView("samples")
--   spark.read.parquet(URL + "/stacks").createOrReplaceTempView("stacks")
-- Conditions on date, service, host, time, event and labels['name'] go where it says so.
with sums as (
  select stack_id, sum(weight) as weight
  from samples
  where event like 'cpu-clock%' -- conditions
  group by stack_id
), best as (
  select stack_id, max_by(frames, named) as frames
  from stacks
  group by stack_id
)
select concat(array_join(transform(frames, f -> replace(f.function, ';', ':')), ';'), ' ', weight)
  as folded
from sums join best using (stack_id)
