-- Folded stacks of a data set, for `prof report -i -`; the views `samples` and `stacks` are
--   spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
--   spark.read.parquet(URL + "/samples").createOrReplaceTempView("samples")
--   spark.read.parquet(URL + "/stacks").createOrReplaceTempView("stacks")
-- Without the setting, Spark takes the hosts 007 and 7 for one number.
-- Of the event with the most samples; for another, write its name in place of the inner query.
-- Conditions on date, service, host, time and labels['name'] go where it says so.
with shown as (
  select event
  from samples
  group by event
  order by sum(count) desc, event
  limit 1
), sums as (
  select stack_id, sum(weight) as weight
  from samples
  where event = (select event from shown) -- conditions
  group by stack_id
), best as (
  select stack_id, max_by(frames, named) as frames
  from stacks
  group by stack_id
)
select concat(array_join(transform(frames, f -> replace(f.function, ';', ':')), ';'), ' ', weight)
  as folded
from sums join best using (stack_id)
