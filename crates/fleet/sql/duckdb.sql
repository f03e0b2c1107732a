-- Folded stacks of a data set, for `prof report -i -`:
--   duckdb -noheader -list -cmd "set variable url = '/data/profiles'" < duckdb.sql
-- Conditions on date, service, host, time, event and labels['name'] go where it says so.
with sums as (
  select stack_id, sum(weight)::bigint as weight
  from read_parquet(getvariable('url') || '/samples/**/*.parquet', hive_partitioning = true)
  where event like 'cpu-clock%' -- conditions
  group by stack_id
), named as (
  select stack_id, arg_max(frames, named) as frames
  from read_parquet(getvariable('url') || '/stacks/**/*.parquet', hive_partitioning = true)
  group by stack_id
)
select array_to_string(list_transform(frames, lambda f: replace(f.function, ';', ':')), ';')
  || ' ' || weight as folded
from sums join named using (stack_id);
