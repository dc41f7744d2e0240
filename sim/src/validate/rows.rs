//! Task rows, as their writes lead from one to the next.

use std::collections::BTreeMap;
use std::fmt;

use leaseproof_rules::{
    Actor, Answer, CallOutcome, Counts, EffectRule, EffectStep, Entry, Epoch, Guard, Guards, Judgement, Row, Status,
    TRANSITIONS, Verb, Write, effect_step, entry_after, entry_after_intent, judge,
};
use leaseproof_scenarios::RunEnd;

use super::{At, Step, Validator, Wrong};

/// A task's row, and the runs that were claimed.
#[derive(Default)]
pub(super) struct Task {
    /// `None`: not in the queue yet.
    pub status: Option<Status>,
    pub epoch: Epoch,
    pub counts: Counts,
    pub claimed_ms: i64,
    pub lease_until_ms: Option<i64>,
    pub overrun_ms: Option<i64>,
    pub due_ms: i64,
    pub entry: Option<Entry>,
    pub runs: BTreeMap<Epoch, Run>,
}

/// A run, from its claim on.
#[derive(Clone, Default)]
pub(super) struct Run {
    pub node: String,
    /// Which life of its process has claimed it.
    pub life: u32,
    pub number: Option<u64>,
    pub end: Option<RunEnd>,
    /// What the journal said when it was claimed.
    pub before: Option<Entry>,
    pub has_intent: bool,
    pub calls: u32,
    /// Its completion was refused.
    pub refused: bool,
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(status) = self.status else { return f.write_str("not in the queue") };
        let Counts { attempts, interruptions } = self.counts;
        write!(f, "{status} epoch {}, {attempts} attempts, {interruptions} interruptions", self.epoch)?;
        if let Some(until) = self.lease_until_ms {
            write!(f, ", lease until {until} ms")?;
        }
        if status.is_claimable() {
            write!(f, ", due at {} ms", self.due_ms)?;
        }
        match self.entry {
            Some(entry) => write!(f, ", journal {}", entry.name()),
            None => Ok(()),
        }
    }
}

impl Task {
    pub fn is_resolved(&self) -> bool {
        self.status.is_some_and(Status::is_resolved)
    }

    /// The row as the rules see it at this moment of the database's clock.
    pub fn row(&self, now_ms: i64) -> Row {
        Row {
            status: self.status.unwrap_or(Status::Pending),
            epoch: self.epoch,
            due: self.due_ms <= now_ms,
            lease_live: self.lease_until_ms.is_some_and(|until| until > now_ms),
            owner_superseded: false,
            overrun: self.overrun_ms.is_some_and(|at| at < now_ms),
        }
    }

    /// The writes with the row's own epoch that the rules would apply now, as the table names them.
    fn open(&self, now_ms: i64, guards: Guards) -> Vec<String> {
        let row = self.row(now_ms);
        let applies = |verb, to| {
            !matches!(
                judge(row, Write { verb, to, epoch: row.epoch }, guards),
                Judgement::Refused(_) | Judgement::Already
            )
        };
        let edges = TRANSITIONS.iter().filter(|edge| applies(edge.verb, edge.to));
        let mut open: Vec<String> =
            edges.map(|edge| format!("{} of epoch {} to {}", edge.verb.name(), row.epoch, edge.to)).collect();
        if row.status.is_claimable() && row.epoch > 0 {
            open.push(format!("adopt of epoch {}", row.epoch - 1));
        }
        if open.is_empty() {
            open.push("no write".to_owned());
        }
        open
    }
}

impl Validator<'_> {
    pub(super) fn enqueue(&mut self, at: &At<'_>) -> Step {
        self.by(at.line, "person")?;
        let task = &mut self.tasks[at.task];
        if task.status.is_some() {
            return Err(Wrong::new("it is in the queue already", task.to_string(), &["a claim"]));
        }
        task.status = Some(Status::Pending);
        Ok(())
    }

    /// A write that was committed.
    pub(super) fn write(&mut self, at: &At<'_>, verb: Verb) -> Step {
        let line = at.line;
        let task = &self.tasks[at.task];
        let now_ms = line.now_ms.unwrap_or(i64::MAX);
        let wrong = |why: String| Err(Wrong { why, state: task.to_string(), allowed: task.open(now_ms, self.guards) });
        let (Some(status), Some(_)) = (task.status, line.now_ms) else {
            return wrong(
                "the task is not in the queue, or the line does not say when the database wrote it".to_owned(),
            );
        };
        let named = |name: &Option<String>| name.as_deref().and_then(Status::from_name);
        let (from, Some(to)) = (named(&line.from), named(&line.to)) else {
            return wrong(format!("{:?} is no status", line.to));
        };
        if from != Some(status) {
            return wrong(format!("it says that the row was in {:?}", line.from));
        }
        self.writer(at, verb)?;
        if line.epoch.is_none() && verb != Verb::Claim {
            return wrong("a write that presents no epoch".to_owned());
        }
        let (row, epoch) = (task.row(now_ms), line.epoch.unwrap_or(task.epoch));
        let judged = judge(row, Write { verb, to, epoch }, self.guards);
        let (after, is_adopted) = match judged {
            Judgement::Applied { status, epoch } => ((status, epoch), false),
            Judgement::Adopted => ((Status::Success, row.epoch), true),
            Judgement::Already => return wrong("the rules find it applied already".to_owned()),
            Judgement::Refused(refusal) => return wrong(format!("the rules refuse it: {refusal:?}")),
        };
        if is_adopted != (line.event == "adopt") {
            return wrong("an adoption is of a task that waits to be claimed, and nothing else is".to_owned());
        }
        if (to, line.row_epoch) != (after.0, Some(after.1)) {
            return wrong(format!("the rules lead to {} epoch {}", after.0, after.1));
        }
        let counts = task.counts.after(&row, verb);
        let moves = status != to || task.epoch != after.1;
        let said = line.attempts.zip(line.interruptions);
        if moves.then_some((counts.attempts, counts.interruptions)) != said {
            return wrong(format!(
                "the rules count {} attempts and {} interruptions",
                counts.attempts, counts.interruptions
            ));
        }
        self.clocks(at, verb, now_ms)?;
        if self.guards == Guards::ALL {
            self.evidence(at, verb)?;
            self.decided(at, verb, now_ms)?;
        }
        let life = self.processes.get(&line.node).map_or(0, |process| process.life);
        let task = &mut self.tasks[at.task];
        (task.status, task.epoch, task.counts) = (Some(to), after.1, counts);
        if let Some(due) = line.due_ms {
            task.due_ms = due;
        }
        if matches!(verb, Verb::Claim | Verb::Heartbeat) {
            task.lease_until_ms = line.lease_until_ms;
        }
        if verb == Verb::Claim {
            (task.claimed_ms, task.overrun_ms) = (now_ms, line.overrun_ms);
            let run = Run { node: line.node.clone(), life, before: task.entry, ..Run::default() };
            task.runs.insert(after.1, run);
        }
        if to != Status::Running {
            (task.lease_until_ms, task.overrun_ms) = (None, None);
        }
        if verb != Verb::Heartbeat
            && let Some(entry) = line.entry.as_deref().and_then(Entry::from_name)
        {
            task.entry = Some(if verb == Verb::Intent { entry_after_intent(task.entry) } else { entry });
        }
        if verb == Verb::Intent
            && let Some(run) = task.runs.get_mut(&epoch)
        {
            run.has_intent = true;
        }
        Ok(())
    }

    /// The write is of somebody who may write it: an owner's of the node that has claimed the run whose epoch it carries.
    fn writer(&self, at: &At<'_>, verb: Verb) -> Step {
        let (line, task) = (at.line, &self.tasks[at.task]);
        let is_executor = self.story.executors.iter().any(|executor| executor.name == line.node);
        match verb.actor() {
            Actor::Sweeper => self.by(line, "sweeper"),
            Actor::Person => self.by(line, "person"),
            Actor::Claimer if is_executor => Ok(()),
            Actor::Claimer => Err(Wrong::new("only executors claim", task.to_string(), &["by an executor"])),
            Actor::Owner => {
                let claims = task.runs.iter().map(|(epoch, run)| format!("epoch {epoch} by {}", run.node)).collect();
                match line.epoch.and_then(|epoch| task.runs.get(&epoch)) {
                    Some(run) if run.node == line.node => Ok(()),
                    _ => {
                        let why = format!("{} has claimed no run of epoch {:?}", line.node, line.epoch);
                        Err(Wrong { why, state: task.to_string(), allowed: claims })
                    }
                }
            }
        }
    }

    /// Lease, due time and bound on the run are what the policy says, on the database's clock.
    fn clocks(&self, at: &At<'_>, verb: Verb, now_ms: i64) -> Step {
        let (line, task, policy) = (at.line, &self.tasks[at.task], &self.story.policy);
        let later = |ms: u64| now_ms.saturating_add_unsigned(ms);
        let lease = matches!(verb, Verb::Claim | Verb::Heartbeat).then(|| later(policy.lease_ms));
        let overrun = policy.expected_run_ms.filter(|_| verb == Verb::Claim).map(later);
        let due = match verb {
            Verb::Retry => Some(later(policy.backoff.delay_ms(task.counts.attempts.saturating_add(1)))),
            Verb::Requeue | Verb::Rerun => Some(now_ms),
            // As it was; of a task that was due from the beginning the trace does not know when.
            Verb::Release => line.due_ms,
            _ => None,
        };
        let clocks = [
            ("lease_until_ms", line.lease_until_ms, lease),
            ("overrun_ms", line.overrun_ms, overrun),
            ("due_ms", line.due_ms, due),
        ];
        for (what, said, ruled) in clocks {
            if said != ruled {
                let why = format!("{what} is {said:?}, the policy says {ruled:?}");
                return Err(Wrong {
                    why,
                    state: format!("{task}, now {now_ms} ms"),
                    allowed: vec![format!("{what} {ruled:?}")],
                });
            }
        }
        Ok(())
    }

    /// What its run has done, and what the third party has, bears a write out.
    fn evidence(&self, at: &At<'_>, verb: Verb) -> Step {
        let (line, task, account) = (at.line, &self.tasks[at.task], &self.accounts[at.task]);
        let Some((epoch, run)) = line.epoch.and_then(|epoch| Some((epoch, task.runs.get(&epoch)?))) else {
            return Ok(());
        };
        let wrong = |why: &str, allowed: &[&str]| Err(Wrong::new(why, task.to_string(), allowed));
        match verb {
            Verb::Complete if run.end != Some(RunEnd::Ok) => {
                wrong("the handler has not come to a good end", &["run_end with ok first"])
            }
            // A late copy, which changes nothing.
            Verb::Intent if task.entry == Some(Entry::Done) => Ok(()),
            Verb::Intent if run.number.is_none() || run.end.is_some() => {
                wrong("no handler of this run is at work", &["run_begin first"])
            }
            Verb::Intent if effect_step(run.before, self.rule(at.task)) != EffectStep::Call => {
                wrong("what the journal said at the claim forbids the call", &["no intent"])
            }
            Verb::Outcome => {
                let Some(entry) = line.entry.as_deref().and_then(Entry::from_name) else {
                    return wrong("an outcome that says nothing", &["DONE", "NOT_DONE"]);
                };
                let mut allowed = Vec::new();
                if account.did(epoch) {
                    allowed.push(entry_after(run.before, CallOutcome::Done));
                }
                if run.has_intent && !account.did(epoch) {
                    allowed.push(entry_after(run.before, CallOutcome::NotDone));
                }
                allowed.extend(account.answers(epoch).filter_map(told));
                match allowed.contains(&entry) && entry != Entry::Intent {
                    true => Ok(()),
                    false => {
                        let mut names: Vec<&str> = allowed.iter().map(|entry| entry.name()).collect();
                        if names.is_empty() {
                            names.push("no outcome: intent and call first");
                        }
                        wrong("neither the call nor an answer of the third party bears it out", &names)
                    }
                }
            }
            _ => Ok(()),
        }
    }

    /// How the effect of a task is declared.
    pub(super) fn rule(&self, task: usize) -> EffectRule {
        self.story.tasks[task].effect.as_ref().map_or_else(EffectRule::default, |effect| effect.rule)
    }

    /// A write that has left the row alone.
    pub(super) fn refusal(&mut self, at: &At<'_>) -> Step {
        let (line, task) = (at.line, &self.tasks[at.task]);
        let wrong = |why: String, allowed: &str| Err(Wrong::new(why, task.to_string(), &[allowed]));
        let Some(verb) = Verb::ALL.into_iter().find(|verb| Some(verb.name()) == line.verb.as_deref()) else {
            return wrong(format!("{:?} is no write", line.verb), "a verb");
        };
        if (line.from.as_deref(), line.row_epoch) != (task.status.map(Status::name), Some(task.epoch)) {
            return wrong(
                format!("it says that the row is in {:?}, epoch {:?}", line.from, line.row_epoch),
                "the row's own",
            );
        }
        self.writer(at, verb)?;
        let (Some(now_ms), Some(epoch)) = (line.now_ms, line.epoch) else {
            return wrong("it says no epoch, or not when".to_owned(), "both");
        };
        let row = task.row(now_ms);
        let judged = |to| judge(row, Write { verb, to, epoch }, self.guards);
        let targets = TRANSITIONS.iter().filter(|edge| edge.verb == verb).map(|edge| edge.to);
        let judgements: Vec<Judgement> = targets.map(judged).collect();
        let is_already = judgements.contains(&Judgement::Already);
        // What a sweeper or a person has read before, and whether the record has grown since, no trace says.
        // And without the fence a batch of heartbeats with two claims of a task renews it once.
        let once = verb == Verb::Heartbeat && !self.guards.has(Guard::FenceHeartbeat);
        let has_read = once || matches!(verb.actor(), Actor::Sweeper | Actor::Person);
        let refused = has_read || judgements.iter().all(|judgement| matches!(judgement, Judgement::Refused(_)));
        if line.event == "already" && !is_already || line.event == "refuse" && (is_already || !refused) {
            let why = format!("the rules do not say {}", line.event);
            return Err(Wrong {
                why,
                state: format!("{task}, now {now_ms} ms"),
                allowed: vec![format!("{judgements:?}")],
            });
        }
        if verb == Verb::Complete
            && line.event == "refuse"
            && let Some(run) = self.tasks[at.task].runs.get_mut(&epoch)
        {
            run.refused = true;
        }
        Ok(())
    }

    /// The result of a run that had lost its task is on the record.
    pub(super) fn late_result(&mut self, at: &At<'_>) -> Step {
        self.writer(at, Verb::Complete)?;
        let task = &self.tasks[at.task];
        let run = at.line.epoch.and_then(|epoch| task.runs.get(&epoch));
        match run {
            Some(run) if run.refused => Ok(()),
            _ => Err(Wrong::new(
                "no completion of this run was refused",
                task.to_string(),
                &["refuse of complete first"],
            )),
        }
    }

    /// What was found out of an effect is in the journal.
    pub(super) fn learn(&mut self, at: &At<'_>) -> Step {
        let (line, task, account) = (at.line, &self.tasks[at.task], &self.accounts[at.task]);
        let wrong = |why: &str, allowed: &[&str]| Err(Wrong::new(why, task.to_string(), allowed));
        let Some(entry) = line.entry.as_deref().and_then(Entry::from_name) else {
            return wrong("it says nothing", &["DONE", "NOT_DONE"]);
        };
        let by_person = line.node == "person";
        if !by_person {
            self.by(line, "sweeper")?;
        }
        let lost = task.status == Some(Status::Running) && !by_person;
        let reopened = by_person && task.status == Some(Status::WaitManual);
        if !lost && !reopened {
            return wrong("a sweeper learns of a task in RUNNING, a person of one in WAIT_MANUAL", &["nothing"]);
        }
        if self.guards == Guards::ALL && lost && !account.answers(task.epoch).filter_map(told).any(|told| told == entry)
        {
            return wrong("the third party has given no such answer to a question with a newer token", &["ask first"]);
        }
        self.tasks[at.task].entry = Some(entry);
        Ok(())
    }
}

/// What an answer says of the journal.
pub(super) const fn told(answer: Answer) -> Option<Entry> {
    match answer {
        Answer::Done => Some(Entry::Done),
        Answer::NotDone => Some(Entry::NotDone),
        Answer::Partial | Answer::Unavailable => None,
    }
}
