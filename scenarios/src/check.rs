//! From a file to a [`Story`]: every check, each with its line.

mod faults;

use std::collections::BTreeSet;
use std::ops::Range;

use leaseproof_rules::{Backoff, EffectRule, Guard, Instruments, OnExhausted, OnUnknown, Policy};
use toml::Spanned;

use crate::error::StoryError;
use crate::file::{EffectTable, ExpectTable, File, PolicyTable, QueueTable, TaskTable};
use crate::limits::{Length, NAMES, is_name};
use crate::path::field_at;
use crate::story::{Effect, Executor, Expect, PersonAct, PersonDecision, RunEnd, Story, Task, Timing};
use crate::verdict::Verdict;

/// The only version there is.
const VERSION: u32 = 1;
/// More would not fit the model's packed state.
const MAX_TASKS: usize = 4;
const MAX_EXECUTORS: usize = 4;
const MAX_SLOTS: u32 = 4;

/// The ids of the requirements (`docs/requirements.md`).
pub const REQUIREMENTS: [&str; 33] = [
    "P1", "P2", "P3", "S1", "S2", "S3", "S4", "T1", "A1", "A2", "A3", "A4", "M1", "M2", "M3", "M4", "M5", "U1", "U2",
    "E-A", "E-B", "E-C", "E1", "E2", "E3", "E4", "E5", "E6", "E7", "H1", "H2", "H3", "H4",
];

struct Place<'a> {
    file: &'a str,
    text: &'a str,
}

type Checked<T> = Result<T, StoryError>;

/// Reads a story.
///
/// # Errors
/// The first thing that is wrong, with file, line, field and what is accepted.
pub(crate) fn parse(name: &str, file: &str, text: &str) -> Checked<Story> {
    let place = Place { file, text };
    let raw: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| place.line(span.start));
        let field = error.span().map_or_else(String::new, |span| field_at(text, span.start));
        StoryError { file: file.to_owned(), line, field, why: error.message().to_owned() }
    })?;
    place.story(name, raw)
}

impl Place<'_> {
    fn line(&self, offset: usize) -> usize {
        self.text[..offset.min(self.text.len())].matches('\n').count() + 1
    }

    fn refuse<T>(&self, span: Range<usize>, field: impl Into<String>, why: impl Into<String>) -> Checked<T> {
        let line = Some(self.line(span.start));
        Err(StoryError { file: self.file.to_owned(), line, field: field.into(), why: why.into() })
    }

    /// A name is printed, stored and sent: no more than what is plain everywhere.
    fn name(&self, text: &Spanned<String>, field: &str) -> Checked<()> {
        match is_name(text.get_ref()) {
            true => Ok(()),
            false => self.refuse(text.span(), field, format!("{:?} is not a name; accepted: {NAMES}", text.get_ref())),
        }
    }

    /// What is printed as it is written.
    fn one_line(&self, text: &Spanned<String>, field: &str) -> Checked<()> {
        match text.get_ref().is_empty() || text.get_ref().chars().any(char::is_control) {
            false => Ok(()),
            true => self.refuse(text.span(), field, "accepted: one line, not empty, without control characters"),
        }
    }

    /// One of the accepted words, or an error that lists them.
    fn word<T: Copy>(&self, text: &Spanned<String>, field: &str, accepted: &[(&str, T)]) -> Checked<T> {
        match accepted.iter().find(|(word, _)| *word == text.get_ref()) {
            Some((_, value)) => Ok(*value),
            None => {
                let list: Vec<_> = accepted.iter().map(|(word, _)| *word).collect();
                self.refuse(
                    text.span(),
                    field,
                    format!("unknown value {:?}; accepted: {}", text.get_ref(), list.join(", ")),
                )
            }
        }
    }

    fn story(&self, name: &str, raw: File) -> Checked<Story> {
        if *raw.version.get_ref() != VERSION {
            let why = format!("version {} is not known; this program reads version {VERSION}", raw.version.get_ref());
            return self.refuse(raw.version.span(), "version", why);
        }
        for id in &raw.requirements {
            if !REQUIREMENTS.contains(&id.get_ref().as_str()) {
                let why = format!("unknown requirement {:?}; accepted: {}", id.get_ref(), REQUIREMENTS.join(", "));
                return self.refuse(id.span(), "requirements", why);
            }
        }
        if !is_name(name) {
            let why = format!("{name:?}, the file's name without its ending, is the story's name; accepted: {NAMES}");
            return Err(StoryError { file: self.file.to_owned(), line: None, field: String::new(), why });
        }
        self.one_line(&raw.title, "title")?;
        self.one_line(&raw.question, "question")?;
        for (i, source) in raw.sources.iter().enumerate() {
            self.one_line(source, &format!("sources[{i}]"))?;
        }
        let guards = Guard::ALL.map(|guard| (guard.name(), guard));
        let without = raw.without.as_ref().map(|text| self.word(text, "without", &guards)).transpose()?;
        let seed = raw.seed.as_ref().map(|seed| self.seed(seed)).transpose()?;
        let policy = self.policy(&raw.policy)?;
        let timing = self.timing(&raw.queue)?;
        let executors = self.executors(&raw)?;
        let tasks = self.tasks(&raw)?;
        let parts = faults::Parts {
            executors: &executors,
            makes_calls: tasks.iter().any(|task| task.effect.is_some()),
            horizon_ms: timing.horizon_ms,
        };
        let faults = raw
            .faults
            .iter()
            .enumerate()
            .map(|(i, fault)| self.fault(fault, &format!("faults[{i}]"), &parts))
            .collect::<Checked<Vec<_>>>()?;
        let mut decisions = Vec::new();
        for (i, decision) in raw.decisions.iter().enumerate() {
            let by_name: Vec<_> = tasks.iter().enumerate().map(|(index, task)| (task.name.as_str(), index)).collect();
            let acts = [("rerun", PersonAct::Rerun), ("fail", PersonAct::Fail), ("succeed", PersonAct::Succeed)];
            decisions.push(PersonDecision {
                task: self.word(&decision.task, &format!("decisions[{i}].task"), &by_name)?,
                act: self.word(&decision.act, &format!("decisions[{i}].do"), &acts)?,
                after_ms: decision.after.0,
            });
        }
        let expect = self.expect(&raw.expect)?;
        Ok(Story {
            name: name.to_owned(),
            title: raw.title.into_inner(),
            question: raw.question.into_inner(),
            requirements: raw.requirements.into_iter().map(Spanned::into_inner).collect(),
            sources: raw.sources.into_iter().map(Spanned::into_inner).collect(),
            without,
            seed,
            policy,
            timing,
            tasks,
            executors,
            faults,
            decisions,
            expect,
        })
    }

    fn seed(&self, text: &Spanned<i64>) -> Checked<u64> {
        match u64::try_from(*text.get_ref()) {
            Ok(seed) => Ok(seed),
            Err(_) => self.refuse(text.span(), "seed", format!("accepted: 0 to {}", i64::MAX)),
        }
    }

    fn policy(&self, table: &Spanned<PolicyTable>) -> Checked<Policy> {
        let raw = table.get_ref();
        let standard = Policy::default();
        let ends = OnExhausted::ALL.map(|choice| (choice.name(), choice));
        let base_ms = raw.retry_delay.map_or(standard.backoff.base_ms, |d| d.0);
        let policy = Policy {
            lease_ms: raw.lease.0,
            heartbeat_ms: raw.heartbeat.0,
            fence_margin_ms: raw.fence_margin.map_or(standard.fence_margin_ms, |d| d.0),
            max_attempts: raw.max_attempts.map_or(standard.max_attempts, |count| count.0),
            max_interruptions: raw.max_interruptions.map_or(standard.max_interruptions, |count| count.0),
            backoff: Backoff {
                base_ms,
                factor: raw.retry_factor.map_or(1, |count| count.0),
                max_ms: raw.retry_max.map_or(standard.backoff.max_ms.max(base_ms), |d| d.0),
            },
            expected_run_ms: raw.expected_run.map(|d| d.0),
            on_exhausted: match &raw.on_exhausted {
                Some(text) => self.word(text, "policy.on_exhausted", &ends)?,
                None => standard.on_exhausted,
            },
            never_retry: Vec::new(),
        };
        match policy.validate() {
            Ok(()) => Ok(policy),
            Err(error) => self.refuse(table.span(), format!("policy.{}", error.field), error.why),
        }
    }

    fn timing(&self, raw: &QueueTable) -> Checked<Timing> {
        let get = |value: &Option<Spanned<Length>>, field: &str, standard_ms: u64| match value {
            Some(ms) if ms.get_ref().0 == 0 => self.refuse(ms.span(), field, "must be longer than 0"),
            Some(ms) => Ok(ms.get_ref().0),
            None => Ok(standard_ms),
        };
        let standard = Timing::default();
        Ok(Timing {
            poll_ms: get(&raw.poll, "queue.poll", standard.poll_ms)?,
            sweep_ms: get(&raw.sweep, "queue.sweep", standard.sweep_ms)?,
            deadline_ms: get(&raw.deadline, "queue.deadline", standard.deadline_ms)?,
            horizon_ms: get(&raw.horizon, "queue.horizon", standard.horizon_ms)?,
        })
    }

    fn executors(&self, raw: &File) -> Checked<Vec<Executor>> {
        let all = raw.executors.get_ref();
        if all.is_empty() || all.len() > MAX_EXECUTORS {
            let why = format!("{} executors; accepted: 1 to {MAX_EXECUTORS}", all.len());
            return self.refuse(raw.executors.span(), "executors", why);
        }
        let mut names = BTreeSet::from(["sweeper", "database", "third_party", "person"]);
        let mut out = Vec::new();
        for (i, executor) in all.iter().enumerate() {
            self.name(&executor.name, &format!("executors[{i}].name"))?;
            if !names.insert(executor.name.get_ref()) {
                let why = format!("{:?} names another node already", executor.name.get_ref());
                return self.refuse(executor.name.span(), format!("executors[{i}].name"), why);
            }
            let slots = executor.slots.as_ref().map_or(1, |slots| *slots.get_ref());
            if let Some(text) = executor.slots.as_ref().filter(|_| !(1..=MAX_SLOTS).contains(&slots)) {
                let why = format!("{slots} slots; accepted: 1 to {MAX_SLOTS}");
                return self.refuse(text.span(), format!("executors[{i}].slots"), why);
            }
            let start_ms = executor.start.as_ref().map_or(0, |d| d.get_ref().0);
            out.push(Executor { name: executor.name.get_ref().clone(), slots, start_ms });
        }
        Ok(out)
    }

    fn tasks(&self, raw: &File) -> Checked<Vec<Task>> {
        let all = raw.tasks.get_ref();
        if all.is_empty() || all.len() > MAX_TASKS {
            return self.refuse(raw.tasks.span(), "tasks", format!("{} tasks; accepted: 1 to {MAX_TASKS}", all.len()));
        }
        let mut names = BTreeSet::new();
        let mut out = Vec::new();
        for (i, task) in all.iter().enumerate() {
            self.name(&task.name, &format!("tasks[{i}].name"))?;
            if !names.insert(task.name.get_ref()) {
                let why = format!("{:?} names another task already", task.name.get_ref());
                return self.refuse(task.name.span(), format!("tasks[{i}].name"), why);
            }
            out.push(self.task(task, &format!("tasks[{i}]"))?);
        }
        Ok(out)
    }

    fn task(&self, raw: &TaskTable, field: &str) -> Checked<Task> {
        let words = RunEnd::ALL.map(|end| (end.name(), end));
        let mut ends = Vec::new();
        for end in &raw.ends {
            ends.push(self.word(end, &format!("{field}.ends"), &words)?);
        }
        if ends.is_empty() {
            ends.push(RunEnd::Ok);
        }
        if let Some(second) = raw.effects.get(1) {
            let why = "a task makes at most one outside call in this version of the format";
            return self.refuse(second.span(), format!("{field}.effects[1]"), why);
        }
        let effect = match raw.effects.first() {
            Some(effect) => Some(self.effect(effect.get_ref(), &format!("{field}.effects[0]"), raw)?),
            None => None,
        };
        Ok(Task { name: raw.name.get_ref().clone(), work_ms: raw.work.get_ref().0, ends, effect })
    }

    fn effect(&self, raw: &EffectTable, field: &str, task: &TaskTable) -> Checked<Effect> {
        self.name(&raw.key, &format!("{field}.key"))?;
        if raw.after.get_ref() > task.work.get_ref() {
            let why = format!("{} is later than the whole work, {}", raw.after.get_ref(), task.work.get_ref());
            return self.refuse(raw.after.span(), format!("{field}.after"), why);
        }
        let words = [("idempotency_key", 0), ("status_query", 1), ("execution_token", 2)];
        let mut has = [false; 3];
        for instrument in &raw.instruments {
            has[self.word(instrument, &format!("{field}.instruments"), &words)?] = true;
        }
        let unknown = OnUnknown::ALL.map(|choice| (choice.name(), choice));
        let on_unknown = match &raw.on_unknown {
            Some(text) => self.word(text, &format!("{field}.on_unknown"), &unknown)?,
            None => OnUnknown::Escalate,
        };
        let [idempotency_key, status_query, execution_token] = has;
        Ok(Effect {
            key: raw.key.get_ref().clone(),
            after_ms: raw.after.get_ref().0,
            rule: EffectRule {
                instruments: Instruments { idempotency_key, status_query, execution_token, ..Instruments::NONE },
                on_unknown,
                ..EffectRule::default()
            },
        })
    }

    fn expect(&self, raw: &ExpectTable) -> Checked<Expect> {
        let mut verdicts = BTreeSet::new();
        for text in raw.verdicts.get_ref() {
            match text.get_ref().parse::<Verdict>() {
                Ok(verdict) => verdicts.insert(verdict),
                Err(error) => return self.refuse(text.span(), "expect.verdicts", error.to_string()),
            };
        }
        if verdicts.is_empty() {
            return self.refuse(raw.verdicts.span(), "expect.verdicts", "must name at least one verdict");
        }
        Ok(Expect {
            verdicts,
            recovers_within_ms: raw.recovers_within.map(|d| d.0),
            effects_max: raw.effects_max.map(|count| count.0),
            effects_min: raw.effects_min.map(|count| count.0),
            late_results_min: raw.late_results_min.map(|count| count.0),
            runs_max: raw.runs_max.map(|count| count.0),
        })
    }
}
