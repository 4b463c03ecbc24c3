-- The versions of each entry of the inbox, in order: what happened to it, when, and until when that held. It is the same
-- for every configuration.
--
-- name: entry of the inbox
-- number: 1 for the first event of the entry
-- seen_at: when it was seen (UTC)
-- what: added, changed, changed back, removed, returned, left out or rejected
-- version: number of the version
-- batch: first batch of the version
-- content_hash: hash of the content
-- until: when the next event of the entry was seen; null for the last one
-- active: whether this is what the entry is now: its last version, and not removed or left out
-- source: where the content came from
-- reason: why, in words
create view design_history_all as
select
  current_configuration.config_hash,
  name,
  row_number() over (partition by name order by seen_at, event_id) as number,
  seen_at,
  what,
  version,
  batch,
  content_hash,
  lead(seen_at) over (partition by name order by seen_at, event_id) as until,
  until is null and what in ('added', 'changed', 'changed back', 'returned') as active,
  source,
  reason
from rows.design_events
cross join main.current_configuration
order by config_hash, name, number;
