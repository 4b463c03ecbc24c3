"""The tables: one definition each, from which Parquet types, DuckDB types, keys, comments and the docs follow.

Column types: `id` is 16 bytes stored and 32 hex digits wherever a person or a frame sees it; the rest are
`text`, `int` (64 bit), `float`, `bool`, `timestamp` (UTC), `blob`, `text[]`, `id[]`.

`keyed` tables hold content: the same key is the same row whatever the configuration, and the first writer wins
(rows of the pipeline before ad hoc ones, which know less about a design).
`scoped` tables hold results of one configuration: their keys cover `config_hash`, and the latest writer wins.
"""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA_VERSION = 1

EFFORT = frozenset({"wall_s", "cpu_s", "latency_s", "retries", "cost_usd", "cached", "cached_simulations"})
"""Columns that say what a result cost, not what it is: the same work done again may differ in them."""


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    comment: str
    refers_to: str = ""
    nullable: bool = False


@dataclass(frozen=True)
class Table:
    name: str
    key: tuple[str, ...]
    scope: str
    comment: str
    columns: tuple[Column, ...]

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """The table's own columns and the provenance that every row carries."""
        return (*self.columns, *PROVENANCE)


def _columns(text: str) -> tuple[Column, ...]:
    """Parse lines `name type[?] [-> table]  comment`; `?` marks a nullable column."""
    columns = []
    for line in text.strip().splitlines():
        head, _, comment = line.strip().partition("  ")
        words = head.split()
        refers = words[3] if len(words) > 3 and words[2] == "->" else ""
        columns.append(Column(words[0], words[1].rstrip("?"), comment.strip(), refers, words[1].endswith("?")))
    return tuple(columns)


PROVENANCE = _columns("""
    stage int?  stage number; null outside the stages (designs, baselines, ad hoc work)
    config_hash text  hash of the whole resolved profile
    created_at timestamp  when the row was made (UTC)
    dagster_run_id text?  Dagster run that made the row
    asset_key text?  asset that made the row, for example stage_1/drafts
    partition_key text?  design batch, `adhoc` for the command line, null for unpartitioned assets
    code_version text?  code version of the asset
""")


def _table(name: str, key: str, scope: str, comment: str, columns: str) -> Table:
    return Table(name, tuple(key.split()), scope, comment, _columns(columns))


TABLES: dict[str, Table] = {
    t.name: t
    for t in (
        _table(
            "runs",
            "run_id",
            "scoped",
            "Runs of the pipeline; the latest decides the current configuration.",
            """
            run_id text  Dagster run, or another name that is used once
            profile text  name of the profile
            settings text  the resolved profile as JSON; its hash is config_hash
            started_at timestamp  when it started (UTC)
            """,
        ),
        _table(
            "designs",
            "design_id",
            "keyed",
            "Designs as the pipeline sees them, one row per content.",
            """
            design_id id  identity of sources, options and specification
            rtl_id id  identity of what simulation sees
            name text  unique name people use
            split text  train, eval, inbox or adhoc
            kind text  hand_written, generated or imported
            cluster text  unit of the bootstrap: the design itself, or its generator family
            benchmark text  eval, or the held-out kind it belongs to; empty for training designs
            source text  where it came from
            top text  top module
            n_files int  source and header files
            n_lines int  lines of RTL
            n_tokens int?  tokens of RTL before macros are expanded, without comments; null in rows of earlier programs
            n_ports int  ports of the top
            input_bits int  width of all inputs
            output_bits int  width of all outputs
            clocks text[]  clock ports
            resets text[]  reset ports, ! before the active-low ones
            combinational bool  no clock
            n_branches int  branches found by elaboration
            n_conditions_known int  branches with a known stimulus from reset
            difficulty float?  share of the branches that random stimulus is unlikely to reach; null if not analysed
            difficulty_label text?  easy (below 0.1), medium, or hard (above 0.3)
            declared_difficulty text?  what the source says, empty if nothing; null in rows of earlier programs
            deterministic bool?  outputs are a function of inputs (two replays agree); null before the check
            instance text?  name that testbenches are to give the design, empty if any will do; null in such rows
            specification text  the specification, empty if none
            """,
        ),
        _table(
            "design_files",
            "design_id path",
            "keyed",
            "Files of a design.",
            """
            design_id id -> designs  design
            path text  path below the design's root
            role text  source, include or specification
            sha256 text  hash of the content
            n_lines int  lines
            n_tokens int?  tokens before macros are expanded, without comments; null for the specification
            text text  content
            """,
        ),
        _table(
            "design_ports",
            "design_id number",
            "keyed",
            "Ports of the top.",
            """
            design_id id -> designs  design
            number int  0-based place in the port list
            name text  port
            direction text  in, out or inout
            width int  bits, after parameters
            type text  type as the source declares it, after parameters
            role text  clock, reset, valid, ready, payload (goes with a valid) or data
            """,
        ),
        _table(
            "design_instances",
            "design_id number",
            "keyed",
            "Instances of a design, the top first.",
            """
            design_id id -> designs  design
            number int  0-based place, parents before children
            path text  hierarchical path as the simulator names it
            module text  module
            """,
        ),
        _table(
            "design_parameters",
            "design_id number",
            "keyed",
            "Parameters of the top.",
            """
            design_id id -> designs  design
            number int  0-based place
            name text  parameter
            kind text  parameter, localparam or type
            type text  type
            value text  value after overrides, integers decimal (hexadecimal above 32 bits)
            default_value text  default as the source writes it, empty if none
            overridable bool  --param may set it
            """,
        ),
        _table(
            "design_enums",
            "design_id number",
            "keyed",
            "Members of the enumerated types of a design.",
            """
            design_id id -> designs  design
            number int  0-based place
            scope text  package or module that declares the type
            enum text  type, or the variable of a type without a name
            member text  member
            value text  unsigned decimal value
            width int  bits of the type
            file text  source file of the type
            line int  its line
            """,
        ),
        _table(
            "design_constants",
            "design_id number",
            "keyed",
            "Constants that a design compares with: conditions, case items, selections, ranges; each once a module.",
            """
            design_id id -> designs  design
            number int  0-based place
            module text  module
            subject text  what is compared, as the source writes it
            operator text  ==, !=, <, <=, > or >=, with the subject on the left
            literal text  constant as the source writes it: number, parameter or member of an enum
            value text?  its unsigned decimal value; null when it has bits that match anything
            width int  bits of the subject
            kind text  comparison, case or range
            file text  source file
            line int  1-based line
            """,
        ),
        _table(
            "design_includes",
            "design_id file line",
            "keyed",
            "Which file of a design includes which.",
            """
            design_id id -> designs  design
            file text  file with the directive
            line int  1-based line of it
            included text  included file, below the design's root
            """,
        ),
        _table(
            "design_handshakes",
            "design_id number",
            "keyed",
            "Pairs of ports of the top that agree on a transfer.",
            """
            design_id id -> designs  design
            number int  0-based place
            valid text  port that offers: valid, request, push, or empty
            ready text  port that accepts: ready, acknowledge, pop, or full
            drives text  which of the two the testbench drives: valid or ready
            payload text[]  ports that go with valid, in its direction
            valid_low bool  valid is active low (empty)
            ready_low bool  ready is active low (full, busy)
            evidence text  names, structure (both are tested together), or both
            """,
        ),
        _table(
            "exclusions",
            "design_id number",
            "keyed",
            "Exclusions (waivers) of a design: points that nobody has to reach. A point is excluded when all that is"
            " given fits. They never change coverage.",
            """
            design_id id -> designs  design
            number int  0-based place among the design's exclusions; the first that fits says why
            file text  glob of source files (* and ? are wildcards), empty for all
            first_line int?  first line, null for all
            last_line int?  last line, inclusive
            instance text  glob of hierarchical paths (* and ? are wildcards), empty for all
            metric text  metric, empty for all
            reason text  why
            """,
        ),
        _table(
            "build_checks",
            "design_id simulator",
            "keyed",
            "What the simulator makes of a design that came in: its build, and a run of reset and clocks alone.",
            """
            design_id id -> designs  design
            simulator text  simulator and version
            build_id text  the build
            simulation_id id -> simulations  the run
            status text  how the run ended
            n_points int  coverage points of the build
            unavailable text[]  metrics that the simulator cannot measure on this design, as `metric: reason`
            deterministic bool?  two replays of the same inputs agree; null if that could not be found out
            delays bool  the design has delays of its own
            reset_coverage float?  overall coverage that reset and clocks alone give
            build_cpu_s float  CPU seconds of the build, when it was made
            """,
        ),
        _table(
            "rejected_designs",
            "name source reason",
            "scoped",
            "What imports did not accept, and why.",
            """
            name text  record id or folder name
            source text  file or folder, with the line of a record
            reason text  kind of fault, such as `several tops` or `contaminated`
            detail text  the whole message, with file and line
            """,
        ),
        _table(
            "design_overlaps",
            "design_id other_design_id",
            "keyed",
            "Designs that resemble another one, each with the one that it resembles most.",
            """
            design_id id -> designs  design
            other_design_id id -> designs  design that it resembles
            kind text  contaminated (of training, resembles one of evaluation), duplicate or near duplicate
            split text  split of the design
            other_split text  split of the other one
            share float  ROUGE-L F1 (whitespace tokens) of the two files that are most alike; 1 if identical
            exact bool  false: the files are too long to compare, share is what it is at most
            identical bool  the files differ in comments and layout only
            file text  file of the design
            other_file text  file of the other one
            """,
        ),
        _table(
            "design_events",
            "event_id",
            "keyed",
            "What happened to the entries of the inbox: the history of their versions.",
            """
            event_id id  hash of entry, event, version and content; of those that come again also of the time
            name text  entry: name of the folder, file or source file, NAME.FOLDER for a design of a repository
            seen_at timestamp  when it was seen (UTC)
            what text  added, changed, changed back, removed, returned, left out, or rejected (no design in it)
            version int?  number of the version; null for left out, and for versions of an earlier program
            batch text?  first batch (partition) of the version
            content_hash text  hash of the content, empty when it could not be read
            source text  where the content came from: path, or repository@commit:folder
            reason text  why, in words
            """,
        ),
        _table(
            "policies",
            "policy_id",
            "keyed",
            "Everything that proposes testbenches.",
            """
            policy_id id  hash of all that decides its proposals
            name text  public name
            engine text  scripted, transformers, vllm or openai
            checkpoint_id id? -> checkpoints  weights, if any
            settings text  readable summary of the settings
            """,
        ),
        _table(
            "prompts",
            "prompt_id",
            "keyed",
            "What a policy was asked.",
            """
            prompt_id id  hash of the text
            state_id id -> states  state it describes
            text text  prompt as sent
            """,
        ),
        _table(
            "generations",
            "generation_id",
            "keyed",
            "What a policy answered, usable or not.",
            """
            generation_id id  hash of policy, prompt, state, sample and seed
            prompt_id id -> prompts  prompt
            policy_id id -> policies  policy
            state_id id -> states  state
            sample int  0-based number of the sample
            seed int  sampling seed
            text text  answer as returned
            testbench_id id? -> testbenches  extracted testbench; null when unusable
            finish_reason text  stop, length or error
            error text  why the answer is unusable, else empty
            prompt_tokens int  tokens in
            completion_tokens int  tokens out
            latency_s float  wall-clock seconds of the request
            retries int  repeated requests
            cost_usd float  price of the request
            """,
        ),
        _table(
            "testbenches",
            "testbench_id",
            "keyed",
            "Complete stimulus files.",
            """
            testbench_id id  hash of language and text
            language text  cocotb or systemverilog
            text text  the file
            n_lines int  lines
            """,
        ),
        _table(
            "simulations",
            "simulation_id",
            "keyed",
            "One row per simulated key; cache hits add none.",
            """
            simulation_id id  hash of design, testbench, simulator, flags, seed and limits
            design_id id -> designs  design
            rtl_id id  what was simulated
            testbench_id id -> testbenches  testbench
            build_id id  build whose points the hits refer to
            language text  cocotb or systemverilog
            status text  one of the fifteen statuses
            overall float?  mean of line, branch, expression and toggle; null when failing
            line float?  line coverage
            branch float?  branch coverage
            expression float?  expression coverage
            toggle float?  toggle coverage
            fsm float?  FSM coverage (beside overall)
            functional float?  functional coverage (beside overall)
            n_hit int  points hit
            n_points int  points of the build
            simulator text  simulator and version
            seed int  random seed of the simulation
            sim_time_ns int  simulated time
            evaluations int  evaluations of the model
            wall_s float  wall-clock seconds
            cpu_s float  CPU seconds
            feedback text  bounded feedback as policies see it
            log text  tail of the log
            """,
        ),
        _table(
            "coverage_points",
            "build_id point",
            "keyed",
            "Points of a build, in its fixed order.",
            """
            build_id id  build
            point int  0-based index in the bitset
            rtl_id id  what was built
            metric text  line, branch, expression, toggle, fsm or functional
            file text  source file
            line int  1-based line
            column int  1-based column
            instance text  hierarchical path
            what text  kind of point as the simulator names it
            source text  source line
            """,
        ),
        _table(
            "coverage_hits",
            "simulation_id",
            "keyed",
            "Which points a simulation hit.",
            """
            simulation_id id -> simulations  simulation
            build_id id  build
            hits blob  bitset: point i is bit i % 8 of byte i // 8
            n_hit int  bits set
            """,
        ),
        _table(
            "states",
            "state_id",
            "keyed",
            "States (design, testbench, observation).",
            """
            state_id id  hash of design, testbench and simulation
            design_id id -> designs  design
            testbench_id id? -> testbenches  testbench; null in s0
            simulation_id id? -> simulations  observation; null in s0
            score float  coverage, 0 when failing
            """,
        ),
        _table(
            "selections",
            "selection_id",
            "scoped",
            "States chosen for repair.",
            """
            selection_id id  hash of configuration, stage, state and reason
            state_id id -> states  chosen state
            design_id id -> designs  design
            strategy text  worst, median, uniform or best
            reason text  failing, worst, lower_median, ...
            score float  coverage of the state
            """,
        ),
        _table(
            "transitions",
            "transition_id",
            "scoped",
            "One step of a policy: state, answer, next state.",
            """
            transition_id id  hash of configuration, stage, role, generation and place in the trajectory
            trajectory_id id  the draft and the repairs that follow it
            step int  0 for the draft
            role text  draft, repair, eval_direct, eval_agentic, or calibration (the campaign that sets targets)
            design_id id -> designs  design
            policy_id id -> policies  policy that answered
            policy text  its public name
            state_id id -> states  state before
            generation_id id -> generations  answer
            next_state_id id? -> states  state after; null when the answer was unusable
            testbench_id id? -> testbenches  testbench after
            simulation_id id? -> simulations  observation after
            status text  status after; unparsable when there was no testbench
            score_before float  coverage before, 0 when failing
            score_after float  coverage after, 0 when failing
            gain float  score_after - score_before
            logical_simulations int  simulations a cold cache would have run (0 or 1)
            cached bool  the result came from the cache
            accepted bool?  passed the rejection filter; null where no filter applies
            reject_reason text  why not, else empty
            """,
        ),
        _table(
            "sft_examples",
            "example_id",
            "scoped",
            "What a checkpoint was trained on.",
            """
            example_id id  hash of configuration, stage, transition and text
            transition_id id -> transitions  where it comes from
            design_id id -> designs  design
            role text  draft or repair
            variant int  0-based number of the augmentation
            prompt text  model input
            completion text  model output
            n_tokens int  tokens of both
            """,
        ),
        _table(
            "checkpoints",
            "checkpoint_id",
            "scoped",
            "Trained weights.",
            """
            checkpoint_id id  hash of data, parent, settings and versions
            policy text  public name of the policy it makes
            parent_checkpoint_id id? -> checkpoints  where training started; null for the base student
            path text  folder below LLM4COV_HOME
            data_hash text  hash of the training rows, in order
            n_examples int  training rows
            n_designs int  designs among them
            steps int  optimiser steps
            tokens int  tokens seen
            loss_first float?  loss of the first logged steps
            loss_last float?  loss of the last logged steps
            parameters int  model parameters
            cpu_s float  CPU seconds of the training
            versions text  torch, transformers and trl
            """,
        ),
        _table(
            "evaluations",
            "evaluation_id",
            "scoped",
            "One sample of a policy on one evaluation design.",
            """
            evaluation_id id  hash of configuration, policy, mode, design and sample
            policy_id id -> policies  policy
            policy text  its public name
            checkpoint_id id? -> checkpoints  weights, if any
            benchmark text  all, or the kind of design
            mode text  direct or agentic
            design_id id -> designs  design
            cluster text  unit of the bootstrap
            sample int  0-based number
            status text  status of the best state
            overall float  coverage of the best state, 0 when failing
            line float?  its line coverage
            branch float?  its branch coverage
            expression float?  its expression coverage
            toggle float?  its toggle coverage
            passed bool  status is passed
            target_met bool?  running and all targets met; null without a target
            rounds int  repair rounds used
            simulations int  logical simulations (as with a cold cache)
            cached_simulations int  those that came from the cache
            completion_tokens int  tokens generated
            trajectory_id id  its transitions
            simulation_id id? -> simulations  best state
            testbench_id id? -> testbenches  best testbench
            """,
        ),
        _table(
            "scores",
            "score_id",
            "scoped",
            "Evaluations summed up, with bootstrap intervals.",
            """
            score_id id  hash of configuration, policy, benchmark and mode
            policy text  public name
            policy_id id -> policies  policy
            checkpoint_id id? -> checkpoints  weights, if any
            benchmark text  benchmark
            mode text  direct or agentic
            n_designs int  designs
            n_clusters int  clusters
            sim_pass float  share passed
            cov_pass float?  share with all targets met; null without targets
            avg_cov float  mean coverage, 0 where failing
            avg_cov_low float  2.5 % bootstrap quantile
            avg_cov_high float  97.5 % bootstrap quantile
            avg_line_branch float?  mean of line and branch coverage, 0 where failing
            pass_at_1 float?  chance that one sample meets the targets
            pass_at_n float?  chance that one of n does
            best_at_n float  mean over designs of the best of n
            simulations int  logical simulations
            cached_simulations int  those that came from the cache
            bootstrap_seed int  seed of the resampling
            resamples int  number of resamples
            """,
        ),
        _table(
            "comparisons",
            "comparison_id",
            "scoped",
            "Paired differences of two policies.",
            """
            comparison_id id  hash of configuration, policies, benchmark and mode
            policy_a text  policy
            policy_b text  compared with
            benchmark text  benchmark
            mode text  direct or agentic
            n_clusters int  clusters
            diff float  mean coverage of a minus b
            diff_low float  2.5 % bootstrap quantile
            diff_high float  97.5 % bootstrap quantile
            bootstrap_seed int  seed of the resampling
            resamples int  number of resamples
            """,
        ),
        _table(
            "targets",
            "design_id simulator metric",
            "scoped",
            "What coverage counts as enough, per simulator.",
            """
            design_id id -> designs  design
            simulator text  simulator and version; xcelium for imported targets
            metric text  overall, or a metric; metric@instance for an instance below the top
            target float  fraction
            origin text  calibrated or imported
            reference float?  merged coverage of the reference campaign
            simulations int  simulations of that campaign
            """,
        ),
    )
}


def _reference_order() -> tuple[str, ...]:
    ordered: dict[str, None] = {}

    def visit(name: str) -> None:
        for column in TABLES[name].columns:
            if column.refers_to not in ("", name, *ordered):
                visit(column.refers_to)
        ordered[name] = None

    for name in TABLES:
        visit(name)
    return tuple(ordered)


REFERENCE_ORDER = _reference_order()
"""The tables, each after those that its rows refer to: who writes in this order may be killed between any two."""
