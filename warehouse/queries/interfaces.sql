-- How are the designs to be talked to: clocks, resets, handshakes, data, parameters?
--
-- One row a design. A handshake reads `valid/ready`, with * behind the side that the testbench drives.
with
  pairs as (
    select
      design_id,
      list(
        valid || if(drives = 'valid', '*', '') || '/' || ready || if(drives = 'ready', '*', '') order by number
      ) as handshakes
    from design_handshakes
    group by design_id
  ),
  ports as (
    select
      design_id,
      count(*) filter (direction = 'in' and role not in ('clock', 'reset')) as inputs,
      count(*) filter (direction = 'out') as outputs,
      count(*) filter (direction = 'inout') as inouts,
      max(width) as widest
    from design_ports
    group by design_id
  ),
  settings as (
    select
      design_id,
      list(name || ' = ' || value order by number) as parameters
    from design_parameters
    where overridable
    group by design_id
  )
select
  d.name as design,
  d.top,
  d.clocks,
  d.resets,
  h.handshakes,
  p.inputs,
  d.input_bits,
  p.outputs,
  d.output_bits,
  p.inouts,
  p.widest,
  s.parameters,
  d.instance
from designs as d
left join ports as p using (design_id)
left join pairs as h using (design_id)
left join settings as s using (design_id)
order by d.name, d.created_at;
