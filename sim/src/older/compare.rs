//! The comparison of the three designs (S4), measured: every cell is read off runs of the real code.

use std::collections::BTreeMap;
use std::time::Duration;

use leaseproof_rules::Status;
use leaseproof_scenarios::{Story, StoryError};

use super::{Older, OlderRun, Server, run_older};
use crate::run::{Run, RunError, run_story};
use crate::trace::Line;

/// A measured cell.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// In words.
    pub value: String,
    /// The stories of `scenarios/designs` in whose runs it was measured.
    pub measured_in: Vec<&'static str>,
    /// The numbers in it, by name; durations in seconds. What never happened is not there.
    pub numbers: BTreeMap<&'static str, f64>,
}

/// One aspect in which the designs differ.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Which.
    pub aspect: &'static str,
    /// S2.
    pub single_transaction: Cell,
    /// S1.
    pub commit_running: Cell,
    /// S3.
    pub lease: Cell,
}

/// A comparison that can not be made.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A shipped story does not read.
    #[error(transparent)]
    Story(#[from] StoryError),
    /// A run did not come to its end.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A run is not what it is to be measured for.
    #[error("{story}, {design}: {what}")]
    Unexpected {
        /// The story.
        story: &'static str,
        /// The design.
        design: &'static str,
        /// What is missing.
        what: String,
    },
}

/// All runs of one story.
struct Told {
    name: &'static str,
    s1: OlderRun,
    s2: OlderRun,
    lease: Run,
}

impl Told {
    fn of(stories: &[Story], name: &'static str, seed: u64) -> Result<Told, CompareError> {
        let unexpected = |design, what: String| CompareError::Unexpected { story: name, design, what };
        let story = stories.iter().find(|story| story.name == name);
        let story = story.ok_or_else(|| unexpected("all", "there is no such story".to_owned()))?;
        let older = |older| run_older(story, older, Server::DEFAULT, seed);
        let lease = run_story(story, seed)?;
        if let Some(wrong) = lease.complaints(story).into_iter().next() {
            return Err(unexpected("lease", wrong));
        }
        let told = Told { name, s1: older(Older::CommitRunning)?, s2: older(Older::SingleTransaction)?, lease };
        for (design, run) in [("commit-running", &told.s1), ("single-transaction", &told.s2)] {
            if let Some(defect) = run.defects.first() {
                return Err(unexpected(design, defect.clone()));
            }
        }
        Ok(told)
    }

    fn missing(&self, design: &'static str, what: &str) -> CompareError {
        CompareError::Unexpected { story: self.name, design, what: format!("no {what}") }
    }
}

/// Runs the stories and fills the table. Equal seeds give equal tables.
///
/// # Errors
/// See [`CompareError`].
pub fn compare(seed: u64) -> Result<Vec<Row>, CompareError> {
    let stories = leaseproof_scenarios::designs()?;
    let told = |name| Told::of(&stories, name, seed);
    let (undisturbed, crash) = (told("undisturbed")?, told("clean-crash")?);
    let short_main = match stories.iter().find(|story| story.name == undisturbed.name) {
        Some(story) => run_older(story, Older::CommitRunningShort, Server::DEFAULT, seed)?,
        None => return Err(undisturbed.missing("commit-running", "story")),
    };
    let (silent, short, hang) = (told("silent-host")?, told("short-lease")?, told("hang")?);
    let (fails, dies, called) = (told("handler-fails")?, told("crash-loop")?, told("crash-after-call")?);
    Ok(vec![
        visibility(&undisturbed)?,
        after_a_death(&crash)?,
        recovery_time(&silent, &short, &hang)?,
        retries(&fails, &dies, &crash)?,
        locks(&undisturbed, &short_main),
        undecidable(&called)?,
        cost(&undisturbed, &crash),
    ])
}

fn cell(value: String, measured_in: &[&Told], numbers: &[(&'static str, f64)]) -> Cell {
    let measured_in = measured_in.iter().map(|told| told.name).collect();
    Cell { value, measured_in, numbers: numbers.iter().copied().collect() }
}

fn visibility(told: &Told) -> Result<Row, CompareError> {
    let seen = |run: &OlderRun, design| {
        let seen =
            run.seen_at_work.first().cloned().flatten().ok_or_else(|| told.missing(design, "look at the row"))?;
        let claim = match &seen.lock {
            Some(code) => format!("a claim meets the row lock ({code})"),
            None => "a claim finds it taken".to_owned(),
        };
        Ok::<_, CompareError>(cell(format!("{} while the handler works; {claim}", seen.status), &[told], &[]))
    };
    let claimed = event(&told.lease, "claim", 0).ok_or_else(|| told.missing("lease", "claim"))?;
    let lease = format!("{} while the handler works, committed with the claim", claimed.to.as_deref().unwrap_or("?"));
    Ok(Row {
        aspect: "what others see of a run",
        single_transaction: seen(&told.s2, "single-transaction")?,
        commit_running: seen(&told.s1, "commit-running")?,
        lease: cell(lease, &[told], &[]),
    })
}

fn after_a_death(told: &Told) -> Result<Row, CompareError> {
    let (free, again) = (older_free(told)?, older_again(told)?);
    let (lease_free, lease_again) = (lease_free(told)?, lease_again(told)?);
    let words = |how: &str, free: Duration, again: Duration| {
        format!("{how} after {}, run again after {}", secs(free), secs(again))
    };
    let numbers = |free: Duration, again: Duration| [("free_after_s", float(free)), ("again_after_s", float(again))];
    Ok(Row {
        aspect: "after a process was killed",
        single_transaction: cell(words("rolled back", free, again), &[told], &numbers(free, again)),
        commit_running: never(&[told], &told.s1),
        lease: cell(words("taken back", lease_free, lease_again), &[told], &numbers(lease_free, lease_again)),
    })
}

fn recovery_time(silent: &Told, short: &Told, hang: &Told) -> Result<Row, CompareError> {
    let s2 = [older_free(silent)?, older_free(short)?, older_free(hang)?];
    let lease = [lease_free(silent)?, lease_free(short)?];
    let overrun = event(&hang.lease, "escalate", 0).map(at).ok_or_else(|| hang.missing("lease", "escalation"))?;
    let overrun = overrun.saturating_sub(lease_begin(hang, 0)?);
    let all = [silent, short, hang];
    let single_transaction = format!(
        "the server: {} after a host fell silent (TCP keepalive), {} for a task that declares 6 s, {} where a handler hangs \
         (idle timeout)",
        secs(s2[0]),
        secs(s2[1]),
        secs(s2[2]),
    );
    let with_lease = format!(
        "the task: {} after a host fell silent with a lease of 30 s, {} with one of 6 s; where a handler hangs, a person is \
         asked after {} (its expected time: 120 s)",
        secs(lease[0]),
        secs(lease[1]),
        secs(overrun),
    );
    let names = ["silent_host_s", "silent_host_short_lease_s", "hang_s"];
    let numbers =
        |values: [Duration; 3]| -> Vec<(&'static str, f64)> { names.into_iter().zip(values.map(float)).collect() };
    Ok(Row {
        aspect: "who decides when it is free again",
        single_transaction: cell(single_transaction, &all, &numbers(s2)),
        commit_running: never(&all, &silent.s1),
        lease: cell(with_lease, &all, &numbers([lease[0], lease[1], overrun])),
    })
}

fn retries(fails: &Told, dies: &Told, crash: &Told) -> Result<Row, CompareError> {
    let ran = |run: &OlderRun| run.begun.first().map_or(0, Vec::len);
    let end = |run: &OlderRun| run.statuses.first().map_or("?", |status| status.name());
    let s2 = format!(
        "a handler that fails is run {}, {}; one whose process dies six times is run {}, {}",
        times(ran(&fails.s2)),
        end(&fails.s2),
        times(ran(&dies.s2)),
        end(&dies.s2),
    );
    let s1 = format!(
        "a handler that fails is run {}, {}; one whose process dies is run {}, {}",
        times(ran(&fails.s1)),
        end(&fails.s1),
        times(ran(&crash.s1)),
        end(&crash.s1),
    );
    let begins = |told: &Told| told.lease.lines.iter().filter(|line| line.event == "run_begin").count();
    let gap = lease_begin(fails, 1)?.saturating_sub(event(&fails.lease, "run_end", 0).map(at).unwrap_or_default());
    let lease = format!(
        "a handler that fails is run {}, again {} later (declared: 10 s), {}; one whose process dies again and again is run {}, {}",
        times(begins(fails)),
        secs(gap),
        fails.lease.verdict,
        times(begins(dies)),
        dies.lease.verdict,
    );
    let numbers = |fails: usize, dies: usize| [("runs_of_failing", fails as f64), ("runs_of_deadly", dies as f64)];
    Ok(Row {
        aspect: "who decides about another run",
        single_transaction: cell(s2, &[fails, dies], &numbers(ran(&fails.s2), ran(&dies.s2))),
        commit_running: cell(s1, &[fails, crash], &numbers(ran(&fails.s1), ran(&crash.s1))),
        lease: cell(lease, &[fails, dies], &numbers(begins(fails), begins(dies))),
    })
}

fn locks(told: &Told, short_main: &OlderRun) -> Row {
    let of = |run: &OlderRun| (run.longest.transaction, run.longest.lock);
    let numbers =
        |(transaction, lock): (Duration, Duration)| [("transaction_s", float(transaction)), ("lock_s", float(lock))];
    let ((s2, s2_lock), (s1, s1_lock), (brief, _)) = (of(&told.s2), of(&told.s1), of(short_main));
    let blocks = told.lease.blocks;
    Row {
        aspect: "held during a run of 60 s",
        single_transaction: cell(
            format!("a transaction for {} and a row lock for {}", secs(s2), secs(s2_lock)),
            &[told],
            &numbers((s2, s2_lock)),
        ),
        commit_running: cell(
            format!(
                "a row lock for {}; transaction 1 for {}, or for {} if it ends before the work",
                secs(s1_lock),
                secs(s1),
                secs(brief)
            ),
            &[told],
            &numbers((s1, s1_lock)),
        ),
        lease: cell(
            format!("{blocks} transactions that outlive a statement"),
            &[told],
            &[("transaction_blocks", blocks as f64)],
        ),
    }
}

fn undecidable(told: &Told) -> Result<Row, CompareError> {
    let effects = |run: &OlderRun| run.effects.first().copied().unwrap_or_default();
    let end = |run: &OlderRun| run.statuses.first().copied().unwrap_or(Status::Pending);
    let escalated = event(&told.lease, "escalate", 0).map(at).ok_or_else(|| told.missing("lease", "escalation"))?;
    let after = escalated.saturating_sub(lease_fault(told).unwrap_or_default());
    let numbers = |count: u32| [("effects", f64::from(count))];
    Ok(Row {
        aspect: "killed after its call was done",
        single_transaction: cell(
            format!("the effect happened {}, {}: {}", many(effects(&told.s2)), end(&told.s2), told.s2.verdict),
            &[told],
            &numbers(effects(&told.s2)),
        ),
        commit_running: cell(
            format!(
                "the effect happened {}, {} after {}: {}",
                many(effects(&told.s1)),
                end(&told.s1),
                hours(told.s1.virtual_time),
                told.s1.verdict
            ),
            &[told],
            &numbers(effects(&told.s1)),
        ),
        lease: cell(
            format!(
                "the effect happened {}, {} after {}",
                many(told.lease.effects_max),
                told.lease.verdict,
                secs(after)
            ),
            &[told],
            &numbers(told.lease.effects_max),
        ),
    })
}

fn cost(told: &Told, crash: &Told) -> Row {
    const WRITES: [&str; 3] = ["claim", "heartbeat", "complete"];
    let count = |event: &str| told.lease.lines.iter().filter(|line| line.event == event).count();
    let writes: usize = WRITES.iter().map(|event| count(event)).sum();
    let older = |run: &OlderRun| {
        cell(
            format!("{} writes to the row in 60 s, nothing beside the executor", run.writes),
            &[told],
            &[("writes", f64::from(run.writes))],
        )
    };
    let swept = crash.lease.lines.iter().any(|line| line.event == "requeue" && line.node == "sweeper");
    let beside = if swept { "a sweeper beside the executor" } else { "nothing beside the executor" };
    Row {
        aspect: "cost",
        single_transaction: older(&told.s2),
        commit_running: older(&told.s1),
        lease: cell(
            format!("{writes} writes to the row in 60 s, {} of them heartbeats; {beside}", count("heartbeat")),
            &[told, crash],
            &[("writes", writes as f64), ("heartbeats", count("heartbeat") as f64)],
        ),
    }
}

/// Still where the crash left it when the story was over.
fn never(measured_in: &[&Told], run: &OlderRun) -> Cell {
    let status = run.statuses.first().map_or("?", |status| status.name());
    cell(format!("never: {status} after {}", hours(run.virtual_time)), measured_in, &[])
}

/// From the fault, or the first run's begin, to the rollback.
fn older_free(told: &Told) -> Result<Duration, CompareError> {
    let free = told.s2.rolled_back.ok_or_else(|| told.missing("single-transaction", "rollback"))?;
    Ok(free.saturating_sub(older_fault(told)?))
}

fn older_again(told: &Told) -> Result<Duration, CompareError> {
    let again = told.s2.begun.first().and_then(|begun| begun.get(1));
    let again = again.ok_or_else(|| told.missing("single-transaction", "second run"))?;
    Ok(again.saturating_sub(older_fault(told)?))
}

fn older_fault(told: &Told) -> Result<Duration, CompareError> {
    let begin = told.s2.begun.first().and_then(|begun| begun.first()).copied();
    told.s2.first_fault.or(begin).ok_or_else(|| told.missing("single-transaction", "run"))
}

/// From the fault, or the first run's begin, to the moment at which the task is taken back.
fn lease_free(told: &Told) -> Result<Duration, CompareError> {
    let free = event(&told.lease, "requeue", 0).map(at).ok_or_else(|| told.missing("lease", "requeue"))?;
    Ok(free.saturating_sub(lease_fault(told).unwrap_or(lease_begin(told, 0)?)))
}

fn lease_again(told: &Told) -> Result<Duration, CompareError> {
    Ok(lease_begin(told, 1)?.saturating_sub(lease_fault(told).unwrap_or(lease_begin(told, 0)?)))
}

fn lease_begin(told: &Told, nth: usize) -> Result<Duration, CompareError> {
    event(&told.lease, "run_begin", nth).map(at).ok_or_else(|| told.missing("lease", "run"))
}

fn lease_fault(told: &Told) -> Option<Duration> {
    told.lease.lines.iter().find(|line| matches!(&*line.event, "crash" | "cut")).map(at)
}

fn event<'a>(run: &'a Run, name: &str, nth: usize) -> Option<&'a Line> {
    run.lines.iter().filter(|line| line.event == name).nth(nth)
}

fn at(line: &Line) -> Duration {
    Duration::from_nanos(line.t_ns)
}

fn float(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}

/// A duration to a hundredth of a second, or to a second from a thousand on.
fn secs(time: Duration) -> String {
    match time.as_secs() {
        0..1000 => format!("{:.2} s", time.as_secs_f64()),
        _ => format!("{:.0} s", time.as_secs_f64()),
    }
}

fn times(count: usize) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn many(count: u32) -> String {
    times(count as usize)
}

fn hours(time: Duration) -> String {
    format!("{:.0} h", time.as_secs_f64() / 3600.0)
}
