-- Folded stacks of a data set, for `prof report -i -`:
--   clickhouse local --param_url /data/profiles --queries-file clickhouse.sql
-- Of the event with the most samples; for another, write its name in place of the inner query.
-- Of a bucket: s3(...) in place of file(...). Conditions on _path, time and labels['name'] go
-- where it says so.
select concat(
  arrayStringConcat(arrayMap(f -> replaceAll(tupleElement(f, 'function'), ';', ':'), frames), ';'),
  ' ', toString(total)) as folded
from (
  select stack_id, sum(weight) as total
  from file({url:String} || '/samples/**/*.parquet', Parquet)
  where event = (
    select event
    from file({url:String} || '/samples/**/*.parquet', Parquet)
    group by event
    order by sum(count) desc, event
    limit 1
  ) -- conditions
  group by stack_id
) as sums
join (
  select stack_id, argMax(frames, named) as frames
  from file({url:String} || '/stacks/**/*.parquet', Parquet)
  group by stack_id
) as best using (stack_id)
format TSVRaw
