-- Which source lines hold points that no policy ever hit?
select
  design,
  file,
  line,
  list(distinct metric order by metric) as metrics,
  count(*) as points,
  any_value(source) as source
from uncovered
group by design, file, line
order by points desc, design, file, line;
