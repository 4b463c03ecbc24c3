-- Bitsets of coverage points: point i is bit i % 8 of byte i // 8 of a blob (`coverage_hits.hits`).
-- The bit strings of DuckDB count from the most significant bit, hence 7 - i % 8.

-- how many points a bitset holds
create or replace macro bitset_count(hits) as
  bit_count(hits::bit);

-- whether a bitset holds a point
create or replace macro bitset_has(hits, point) as
  get_bit(hits::bit, (8 * (point // 8) + 7 - point % 8)::integer) = 1;

-- points of either of two bitsets of one build
create or replace macro bitset_union(a, b) as
  (a::bit | b::bit)::blob;

-- points of both
create or replace macro bitset_intersection(a, b) as
  (a::bit & b::bit)::blob;

-- points of `a` that `b` lacks
create or replace macro bitset_difference(a, b) as
  (a::bit & ~(b::bit))::blob;

-- union over a group of rows
create or replace macro bitset_union_agg(hits) as
  bit_or(hits::bit)::blob;

-- the points as a sorted list of indices
create or replace macro bitset_list(hits) as
  list_filter(
    range(8 * octet_length(hits)),
    lambda i: get_bit(hits::bit, (8 * (i // 8) + 7 - i % 8)::integer) = 1
  );

-- whether a status with its coverage counts as running; everything else is failing
create or replace macro is_running(status, coverage) as
  status in ('passed', 'test_failed') or (status = 'timeout' and coalesce(coverage, 0) > 0);
