//! The arguments, as people type them.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use leaseproof_model::designs::Design;
use leaseproof_rules::{Guard, Status};
use leaseproof_scenarios::Millis;
use leaseproof_sim::sweep::Pick;

/// Which RUNNING tasks may a system re-run by itself after a worker died, and which must go to a person?
#[derive(Parser)]
#[command(
    version,
    after_help = "Examples:\n  \
        leaseproof matrix\n  \
        leaseproof replay scenarios/stories/batch-oom.toml --seed 7\n  \
        leaseproof check --without fence_complete\n  \
        leaseproof explore --world 8\n  \
        leaseproof queue enqueue --kind shell --payload '{\"command\":\"echo hello\"}'\n\n\
        Exit codes: 0 it holds, 1 violated, 2 bad input, 3 the database does not answer, or a defect."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run every story on the model and on the real code, and compare the verdicts.
    Matrix(MatrixArgs),
    /// Run one story and draw it, one lane a node.
    Replay(ReplayArgs),
    /// Draw stories from seeds, run them on the real code, and shrink what breaks.
    Sweep(SweepArgs),
    /// Hold a trace from a file against the rules, step by step.
    Validate(ValidateArgs),
    /// Check the model: all properties in all worlds, or without one guard.
    Check(CheckArgs),
    /// Measure the three designs beside each other: commit-running, one long transaction, leases.
    Compare(CompareArgs),
    /// Walk through the model by hand, in a browser: stateright's Explorer.
    Explore(ExploreArgs),
    /// Use the queue: SQLite file by default, PostgreSQL, MySQL or MariaDB with --url.
    Queue(QueueArgs),
}

#[derive(Args)]
#[command(after_help = "Examples:\n  leaseproof matrix\n  leaseproof matrix --seeds 500 --json")]
pub struct MatrixArgs {
    /// Simulated runs a story: seeds 0 to N-1.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// Threads; 0 takes one a core.
    #[arg(long, default_value_t = 0)]
    pub jobs: usize,
    /// Only stories whose name contains this.
    #[arg(long)]
    pub only: Option<String>,
    /// Print an array of objects instead of a table.
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Rung {
    /// All interleavings, on the model.
    Model,
    /// The real queue and driver, in the simulation.
    Sim,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    leaseproof replay scenarios/stories/zombie-calls-late.toml\n  \
    leaseproof replay scenarios/stories/batch-oom.toml --seed 7 --trace run.jsonl\n  \
    leaseproof replay scenarios/stories/crash-around-the-call.toml --seeds 200\n  \
    leaseproof replay scenarios/ablations/fence-complete.toml --on model")]
pub struct ReplayArgs {
    /// The story file.
    pub file: PathBuf,
    /// Where to run it.
    #[arg(long, value_enum, default_value = "sim")]
    pub on: Rung,
    /// The seed of the run to draw; if left out, the one that the story names, or 0.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Run this many seeds, from --seed on, and tell how often each verdict came out; draws the first run of the worst.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: Option<u64>,
    /// Write the trace of the run that is drawn here, as JSON lines. Takes the place of an earlier trace, and of nothing else.
    #[arg(long)]
    pub trace: Option<PathBuf>,
    /// Write it for Perfetto (ui.perfetto.dev) here.
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
    /// Write it for ShiViz (bestchai.bitbucket.io/shiviz) here.
    #[arg(long, value_name = "FILE")]
    pub shiviz: Option<PathBuf>,
    /// Print one object instead of the lanes.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    leaseproof replay scenarios/stories/batch-oom.toml --seed 7 --trace run.jsonl\n  \
    leaseproof validate run.jsonl --story scenarios/stories/batch-oom.toml\n\n\
    Exit code 1 names the first line that is no step of the rules, where the lines before it have led, and what is allowed there.")]
pub struct ValidateArgs {
    /// The trace, as `replay --trace` or `sweep --only … --trace` writes it.
    pub trace: PathBuf,
    /// The story that it tells.
    #[arg(long, value_name = "FILE")]
    pub story: PathBuf,
    /// If it holds, write it for Perfetto (ui.perfetto.dev) here.
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
    /// If it holds, write it for ShiViz (bestchai.bitbucket.io/shiviz) here.
    #[arg(long, value_name = "FILE")]
    pub shiviz: Option<PathBuf>,
    /// Print one object.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    leaseproof sweep --seeds 10000\n  \
    leaseproof sweep --time 10m --state sweep.json\n  \
    leaseproof sweep --without fence_complete --save found\n  \
    leaseproof sweep --only 17.3\n\n\
    A run is named by its seed, e.g. 17, or as a variation of the story of a seed, e.g. 17.3: variations are tried of \
    stories that have reached something new. The name alone brings the run back. A sweep ends with the first round that \
    finds a violation; the first of them is shrunk.")]
pub struct SweepArgs {
    /// So many runs; 1000 if neither this nor --time is given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: Option<u64>,
    /// The first seed.
    #[arg(long, value_name = "SEED", value_parser = clap::value_parser!(u64).range(..=Pick::LAST_SEED))]
    pub from: Option<u64>,
    /// Threads; 0 takes one a core. What comes out does not depend on it.
    #[arg(long, default_value_t = 0)]
    pub jobs: usize,
    /// Begin no further round after this long: "10m".
    #[arg(long, value_parser = Millis::parse, allow_hyphen_values = true)]
    pub time: Option<Millis>,
    /// Switch one guard off. Exit code 1 is then the answer one expects.
    #[arg(long, value_name = "GUARD", value_parser = guard_on_code)]
    pub without: Option<Guard>,
    /// Keep in this file how far the sweep is, and go on from there.
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Save the shrunk story of the first violation in this folder; replay then runs it.
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Do not shrink.
    #[arg(long, conflicts_with = "save")]
    pub no_shrink: bool,
    /// Run this one alone and draw it.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["seeds", "from", "time", "state", "save", "no_shrink"])]
    pub only: Option<Pick>,
    /// With --only: write the trace here, as JSON lines.
    #[arg(long, value_name = "FILE", requires = "only")]
    pub trace: Option<PathBuf>,
    /// Print one object instead of the table.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    leaseproof check\n  \
    leaseproof check --without cas_at_claim\n  \
    leaseproof check --ablations --json\n  \
    leaseproof check --design all\n  \
    leaseproof check --beyond\n  \
    leaseproof check --coverage\n  \
    leaseproof check --decisions --only 'query, else escalate'\n\n\
    The designs commit-running and single-transaction are there to be compared with: they are expected to violate.")]
pub struct CheckArgs {
    /// Which design to check, or all three. Exit code 1 is the answer one expects of the two older ones.
    #[arg(long, default_value = "lease", value_parser = designs, conflicts_with_all = ["without", "ablations", "decisions", "beyond", "coverage"])]
    pub design: Designs,
    /// Switch one guard off and see what breaks. Exit code 1 is then the answer one expects.
    #[arg(long, value_name = "GUARD", conflicts_with = "ablations", value_parser = guard)]
    pub without: Option<Guard>,
    /// The same for every guard, one after the other.
    #[arg(long)]
    pub ablations: bool,
    /// Show what breaks under faults that the design does not promise to survive: a database that loses its last commit, and
    /// calls delivered twice. Exit code 1 is the answer one expects.
    #[arg(long, conflicts_with_all = ["ablations", "without", "decisions"])]
    pub beyond: bool,
    /// Compute what a sweeper may decide by what it can see, for every way to declare an outside call. Exit code 1 if a
    /// rule is unsafe, or asks for a person without need.
    #[arg(long, conflicts_with_all = ["ablations", "without"])]
    pub decisions: bool,
    /// Count every kind of step, in each of the three designs, over the worlds in which it is checked. Exit code 1 if one
    /// never happens and is not said why.
    #[arg(long, conflicts_with_all = ["ablations", "without", "decisions", "beyond"])]
    pub coverage: bool,
    /// With --decisions: only declarations whose words contain this, e.g. "key" or "nothing, else".
    #[arg(long, value_name = "TEXT", requires = "decisions")]
    pub only: Option<String>,
    /// With --decisions: print the page docs/decision-table.md.
    #[arg(long, requires = "decisions", conflicts_with_all = ["json", "only"])]
    pub markdown: bool,
    /// Print an array of objects instead of a table.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  leaseproof compare\n  leaseproof compare --json\n\n\
    Runs the stories of scenarios/designs with the real code of each design, in the simulation: hours are virtual. Exit code 0: \
    the table is filled.")]
pub struct CompareArgs {
    /// The seed of the runs.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print the table of docs/designs.md.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print an array of objects instead of a table.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    leaseproof explore --list\n  \
    leaseproof explore --world 8\n  \
    leaseproof explore --without fence_complete\n  \
    leaseproof explore --address 127.0.0.1:0\n\n\
    Serves until Ctrl-C. The page shows safety properties; for “eventually”, which needs fairness, see leaseproof check.")]
pub struct ExploreArgs {
    /// The world: its number in --list, or a part of its name that no other has. Default: the first or, with --without,
    /// the small world in which `check` misses the guard.
    #[arg(long, value_name = "N|NAME")]
    pub world: Option<String>,
    /// Switch one guard off.
    #[arg(long, value_name = "GUARD", value_parser = guard)]
    pub without: Option<Guard>,
    /// Where to listen, HOST:PORT; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:3000")]
    pub address: String,
    /// Listen also where other machines can reach it. The page has no password.
    #[arg(long)]
    pub allow_remote: bool,
    /// Print the worlds and serve nothing.
    #[arg(long, conflicts_with_all = ["world", "without", "address", "allow_remote"])]
    pub list: bool,
    /// Print JSON: one object with the URL or, with --list, an array of objects.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    leaseproof queue migrate\n  \
    leaseproof queue enqueue --kind shell --payload '{\"command\":\"echo hello\"}'\n  \
    leaseproof queue work --until-empty\n  \
    leaseproof queue --url postgres://postgres@127.0.0.1/postgres list --status WAIT_MANUAL\n  \
    leaseproof queue resolve 7 --rerun --by alice --why 'checked with the bank: not charged' --effect charge=not-done")]
pub struct QueueArgs {
    /// The database: sqlite:FILE, postgres://… or mysql://….
    #[arg(long, global = true, env = "LEASEPROOF_URL", default_value = "sqlite:leaseproof.db")]
    pub url: String,
    /// Print JSON.
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: QueueCommand,
}

#[derive(Subcommand)]
pub enum QueueCommand {
    /// Create or update the tables.
    #[command(
        after_help = "Examples:\n  leaseproof queue migrate\n  leaseproof queue --url postgres://localhost/app migrate"
    )]
    Migrate,
    /// Add a task.
    Enqueue(EnqueueArgs),
    /// Work on tasks of kind `shell`: the payload's `command` runs under sh. Also sweeps.
    Work(WorkArgs),
    /// Look once for tasks whose owner is lost or whose run is far over its time.
    #[command(after_help = "Examples:\n  leaseproof queue sweep\n  leaseproof queue sweep --json")]
    Sweep,
    /// List tasks.
    List(ListArgs),
    /// Show a task with its whole record.
    #[command(after_help = "Examples:\n  leaseproof queue show 1\n  leaseproof queue show 1 --json")]
    Show {
        /// The task's id.
        id: i64,
    },
    /// Decide about a task that waits for a person.
    Resolve(ResolveArgs),
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    leaseproof queue enqueue --payload '{\"command\":\"echo hello\"}'\n  \
    leaseproof queue enqueue --payload - --lease 1m --heartbeat 15s --max-attempts 5 --unique-key report-2026-12 < job.json\n\n\
    A task of kind `shell` takes {\"command\": \"…\", \"timeout_ms\": 60000}; the timeout may be left out.")]
pub struct EnqueueArgs {
    /// Which handler runs it.
    #[arg(long, default_value = "shell")]
    pub kind: String,
    /// JSON for the handler; `-` reads standard input.
    #[arg(long, default_value = "{}")]
    pub payload: String,
    /// How long a claim lives without a heartbeat: "250ms", "30s", "5m", "2h" (database's clock).
    #[arg(long, default_value = "30s", value_parser = Millis::parse, allow_hyphen_values = true)]
    pub lease: Millis,
    /// How often the worker renews (its monotonic clock).
    #[arg(long, default_value = "10s", value_parser = Millis::parse, allow_hyphen_values = true)]
    pub heartbeat: Millis,
    /// Failed runs before a person is asked.
    #[arg(long, default_value_t = 3)]
    pub max_attempts: u32,
    /// Lost workers before a person is asked; 0 asks at the first.
    #[arg(long, default_value_t = 3)]
    pub max_interruptions: u32,
    /// Delay after the first failure; doubles with each.
    #[arg(long, default_value = "1s", value_parser = Millis::parse, allow_hyphen_values = true)]
    pub retry_delay: Millis,
    /// Longer than this, a person looks at it (database's clock).
    #[arg(long, value_parser = Millis::parse, allow_hyphen_values = true)]
    pub expected_run: Option<Millis>,
    /// How long before the end of its lease a worker stops acting on the task; default: 3s, or a tenth of a short lease.
    #[arg(long, value_parser = Millis::parse, allow_hyphen_values = true)]
    pub fence_margin: Option<Millis>,
    /// What follows when the attempts are used up.
    #[arg(long, value_enum, default_value = "escalate")]
    pub on_exhausted: Exhausted,
    /// An error that is never retried, by its code; may be given again. Codes of kind `shell`: exit-N, signal-N, timeout.
    #[arg(long, value_name = "CODE")]
    pub never_retry: Vec<String>,
    /// Not before this long from now.
    #[arg(long, default_value = "0s", value_parser = Millis::parse, allow_hyphen_values = true)]
    pub delay: Millis,
    /// A second task with the same key is not put in: makes it safe to enqueue again.
    #[arg(long)]
    pub unique_key: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Exhausted {
    /// A person decides.
    Escalate,
    /// The task is marked FAIL.
    Fail,
}

#[derive(Args)]
#[command(
    after_help = "Payload of a task of kind `shell`: {\"command\": \"…\", \"timeout_ms\": 60000}; the timeout may be left out.\n\
    The command runs under `sh -c` with LEASEPROOF_TASK_ID and LEASEPROOF_EPOCH set. Exit 0 is success, 65 is bad input \
    (never retried), everything else is worth another attempt, unless the task was put in with --never-retry exit-N. The command runs in a process group of its own. When its lease is lost, its time is over or the grace of a shutdown is, \
    the whole group gets TERM and, a second later (sooner where the fence margin is short), KILL; so it does when this \
    worker is killed. What a command has left in the background is killed when the command ends. \
    Only a process that leaves the group (setsid) is not reached: what it calls should check the epoch.\n\n\
    SIGINT, SIGTERM, SIGQUIT and SIGHUP stop the worker: no new tasks, and commands may finish within --grace. Any of the \
    first three again ends them at once (exit code 1); their tasks stay RUNNING until their leases end. A SIGHUP that was ignored at \
    the start (nohup) stays ignored.\n\n\
    A task of any other kind goes to a person: this worker has no handler for it.\n\n\
    Examples:\n  leaseproof queue work --until-empty\n  leaseproof queue work --slots 16 --slot-name host-a --grace 2m"
)]
pub struct WorkArgs {
    /// Tasks at once.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub slots: u32,
    /// Stop as soon as every task is resolved (SUCCESS, FAIL or WAIT_MANUAL), retries and other workers' tasks included. Exit
    /// code 1 if a task that this worker ran is not in SUCCESS then.
    #[arg(long)]
    pub until_empty: bool,
    /// How long a shutdown (Ctrl-C, SIGTERM, SIGQUIT, SIGHUP) waits for commands before it puts their tasks back.
    #[arg(long, default_value = "30s", value_parser = Millis::parse, allow_hyphen_values = true)]
    pub grace: Millis,
    /// An explicit boot id instead of a random one; must never have been used.
    #[arg(long)]
    pub boot_id: Option<String>,
    /// The instance slot: a worker that takes it over declares the one before it dead.
    #[arg(long)]
    pub slot_name: Option<String>,
    /// How often an idle worker looks for tasks.
    #[arg(long, default_value = "1s", value_parser = Millis::parse, allow_hyphen_values = true)]
    pub poll: Millis,
    /// How often it sweeps.
    #[arg(long, default_value = "5s", value_parser = Millis::parse, allow_hyphen_values = true)]
    pub sweep: Millis,
}

#[derive(Args)]
#[command(
    after_help = "Examples:\n  leaseproof queue list --status wait_manual\n  leaseproof queue list --kind shell --limit 10 --after 40 --json"
)]
pub struct ListArgs {
    /// Only tasks with this status.
    #[arg(long, value_parser = status)]
    pub status: Option<Status>,
    /// Only tasks of this kind.
    #[arg(long)]
    pub kind: Option<String>,
    /// At most this many, in the order in which they were put in.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
    /// Only tasks after this id: the next page.
    #[arg(long, value_name = "ID", default_value_t = 0)]
    pub after: i64,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    leaseproof queue resolve 7 --rerun --effect charge=not-done --by ada --why \"their ledger has no such charge\"\n  \
    leaseproof queue resolve 7 --succeed --by ada --why \"done by hand\"")]
#[command(group = clap::ArgGroup::new("decision").required(true).args(["rerun", "fail", "succeed"]))]
pub struct ResolveArgs {
    /// The task's id.
    pub id: i64,
    /// Run it again.
    #[arg(long)]
    pub rerun: bool,
    /// It has failed.
    #[arg(long)]
    pub fail: bool,
    /// It has succeeded.
    #[arg(long)]
    pub succeed: bool,
    /// Who decides.
    #[arg(long)]
    pub by: String,
    /// Why.
    #[arg(long)]
    pub why: String,
    /// With --rerun: a file with the corrected payload.
    #[arg(long, requires = "rerun")]
    pub input: Option<PathBuf>,
    /// With --rerun, for every effect whose outcome is unknown: what you found out, KEY=done or KEY=not-done.
    #[arg(long = "effect", value_name = "KEY=done|not-done", requires = "rerun")]
    pub effects: Vec<String>,
    /// Refuse if the task's epoch is no longer this one; default: the one it has now.
    #[arg(long)]
    pub epoch: Option<u64>,
}

/// One design, or all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Designs(pub Vec<Design>);

fn designs(text: &str) -> Result<Designs, String> {
    if text == "all" {
        return Ok(Designs(Design::ALL.to_vec()));
    }
    let named = Design::ALL.into_iter().find(|design| design.name() == text);
    named
        .map(|design| Designs(vec![design]))
        .ok_or_else(|| format!("accepted are: {}, all", Design::ALL.map(Design::name).join(", ")))
}

fn guard(text: &str) -> Result<Guard, String> {
    Guard::from_name(text).ok_or_else(|| format!("accepted are: {}", Guard::ALL.map(Guard::name).join(", ")))
}

/// A guard that the queue's code can be built without.
fn guard_on_code(text: &str) -> Result<Guard, String> {
    let there: Vec<&str> = Guard::ALL.into_iter().filter(|guard| guard.on_code()).map(Guard::name).collect();
    let named = Guard::from_name(text).filter(|guard| guard.on_code());
    named.ok_or_else(|| format!("accepted are, of the guards that the real code can run without: {}", there.join(", ")))
}

fn status(text: &str) -> Result<Status, String> {
    Status::from_name(&text.to_uppercase())
        .ok_or_else(|| format!("accepted are: {}", Status::ALL.map(Status::name).join(", ")))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        super::Cli::command().debug_assert();
    }
}
