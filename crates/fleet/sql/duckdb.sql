-- Folded stacks of a data set, for `prof report -i -`:
--   duckdb -noheader -list -cmd "set variable url = '/data/profiles'" < duckdb.sql
-- Of the event with the most samples, or of another: -cmd "set variable event = 'page-faults'".
-- Conditions on date, service, host, time and labels['name'] go where it says so.
with samples as (
  select * from read_parquet(getvariable('url') || '/samples/**/*.parquet',
    hive_partitioning = true, hive_types_autocast = false) -- host=007 is not host=7
), shown as (
  select coalesce(getvariable('event')::varchar,
    (select event from samples group by event order by sum(count) desc, event limit 1)) as event
), sums as (
  select stack_id, sum(weight)::bigint as weight
  from samples
  where event = (select event from shown) -- conditions
  group by stack_id
), named as (
  select stack_id, arg_max(frames, named) as frames
  from read_parquet(getvariable('url') || '/stacks/**/*.parquet', hive_partitioning = true,
    hive_types_autocast = false)
  group by stack_id
)
select array_to_string(list_transform(frames, lambda f: replace(f.function, ';', ':')), ';')
  || ' ' || weight as folded
from sums join named using (stack_id);
