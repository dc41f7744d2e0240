//! From a [`Story`] to its file: what [`crate::parse`] reads back as the same story.

use std::fmt::Write;

use leaseproof_rules::{OnExhausted, OnUnknown, Policy};

use crate::duration::Millis;
use crate::story::{Act, Effect, Fault, Node, Op, PersonAct, Phase, Point, RunEnd, Story, Timing, Trigger, Way};

impl RunEnd {
    /// Every end.
    pub const ALL: [RunEnd; 4] = [RunEnd::Ok, RunEnd::Error, RunEnd::BadInput, RunEnd::Hang];

    /// The name in files and traces.
    pub const fn name(self) -> &'static str {
        match self {
            RunEnd::Ok => "ok",
            RunEnd::Error => "error",
            RunEnd::BadInput => "bad_input",
            RunEnd::Hang => "hang",
        }
    }
}

impl Way {
    /// The name in files and traces.
    pub const fn name(self) -> &'static str {
        match self {
            Way::Both => "both",
            Way::To => "to",
            Way::From => "from",
        }
    }
}

impl Point {
    /// Every point, request before reply.
    pub fn all() -> impl Iterator<Item = Point> {
        Op::ALL.into_iter().flat_map(|op| [Phase::Request, Phase::Reply].map(|phase| Point { op, phase }))
    }

    /// As files write it, e.g. `claim.reply`.
    pub fn name(self) -> String {
        let phase = match self.phase {
            Phase::Request => "request",
            Phase::Reply => "reply",
        };
        format!("{}.{phase}", self.op.name())
    }
}

impl Story {
    /// The story as a file of version 1. What is as the format has it by default is left out, but for the verdicts.
    ///
    /// A story that no file can hold (five tasks, say) is written all the same; reading it back then says what is wrong.
    pub fn to_toml(&self) -> String {
        let mut out = Writer::default();
        out.line("version", "1");
        out.text("title", &self.title);
        out.text("question", &self.question);
        out.texts("requirements", self.requirements.iter().map(String::as_str));
        out.texts("sources", self.sources.iter().map(String::as_str));
        if let Some(guard) = self.without {
            out.text("without", guard.name());
        }
        if let Some(seed) = self.seed {
            out.line("seed", seed);
        }
        out.policy(&self.policy);
        out.timing(self.timing);
        for task in &self.tasks {
            out.table("[[tasks]]");
            out.text("name", &task.name);
            out.duration("work", task.work_ms);
            if task.ends != [RunEnd::Ok] {
                out.texts("ends", task.ends.iter().map(|end| end.name()));
            }
            if let Some(effect) = &task.effect {
                out.effect(effect);
            }
        }
        for executor in &self.executors {
            out.table("[[executors]]");
            out.text("name", &executor.name);
            if executor.slots != 1 {
                out.line("slots", executor.slots);
            }
            if executor.start_ms != 0 {
                out.duration("start", executor.start_ms);
            }
        }
        for fault in &self.faults {
            out.fault(self, fault);
        }
        for decision in &self.decisions {
            out.table("[[decisions]]");
            out.text("task", self.tasks.get(decision.task).map_or("", |task| &task.name));
            let act = match decision.act {
                PersonAct::Rerun => "rerun",
                PersonAct::Fail => "fail",
                PersonAct::Succeed => "succeed",
            };
            out.text("do", act);
            out.duration("after", decision.after_ms);
        }
        let expect = &self.expect;
        out.table("[expect]");
        let verdicts: Vec<String> = expect.verdicts.iter().map(ToString::to_string).collect();
        out.texts("verdicts", verdicts.iter().map(String::as_str));
        if let Some(ms) = expect.recovers_within_ms {
            out.duration("recovers_within", ms);
        }
        let counts = [
            ("effects_min", expect.effects_min),
            ("effects_max", expect.effects_max),
            ("late_results_min", expect.late_results_min),
            ("runs_max", expect.runs_max),
        ];
        for (key, count) in counts {
            if let Some(count) = count {
                out.line(key, count);
            }
        }
        out.text
    }
}

#[derive(Default)]
struct Writer {
    text: String,
}

impl Writer {
    fn line(&mut self, key: &str, value: impl std::fmt::Display) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{key} = {value}");
    }

    fn text(&mut self, key: &str, value: &str) {
        self.line(key, toml::Value::from(value));
    }

    fn texts<'a>(&mut self, key: &str, values: impl Iterator<Item = &'a str>) {
        let list: Vec<String> = values.map(|value| toml::Value::from(value).to_string()).collect();
        self.line(key, format!("[{}]", list.join(", ")));
    }

    fn duration(&mut self, key: &str, ms: u64) {
        self.text(key, &Millis(ms).to_string());
    }

    fn table(&mut self, name: &str) {
        let _ = writeln!(self.text, "\n{name}");
    }

    fn policy(&mut self, policy: &Policy) {
        let standard = Policy::default();
        self.table("[policy]");
        self.duration("lease", policy.lease_ms);
        self.duration("heartbeat", policy.heartbeat_ms);
        if policy.fence_margin_ms != standard.fence_margin_ms {
            self.duration("fence_margin", policy.fence_margin_ms);
        }
        if policy.max_attempts != standard.max_attempts {
            self.line("max_attempts", policy.max_attempts);
        }
        if policy.max_interruptions != standard.max_interruptions {
            self.line("max_interruptions", policy.max_interruptions);
        }
        if policy.backoff.base_ms != standard.backoff.base_ms {
            self.duration("retry_delay", policy.backoff.base_ms);
        }
        if policy.backoff.factor != 1 {
            self.line("retry_factor", policy.backoff.factor);
        }
        if policy.backoff.max_ms != standard.backoff.max_ms.max(policy.backoff.base_ms) {
            self.duration("retry_max", policy.backoff.max_ms);
        }
        if let Some(ms) = policy.expected_run_ms {
            self.duration("expected_run", ms);
        }
        if policy.on_exhausted != OnExhausted::Escalate {
            self.text("on_exhausted", policy.on_exhausted.name());
        }
    }

    fn timing(&mut self, timing: Timing) {
        let standard = Timing::default();
        if timing == standard {
            return;
        }
        self.table("[queue]");
        let clocks = [
            ("poll", timing.poll_ms, standard.poll_ms),
            ("sweep", timing.sweep_ms, standard.sweep_ms),
            ("deadline", timing.deadline_ms, standard.deadline_ms),
            ("horizon", timing.horizon_ms, standard.horizon_ms),
        ];
        for (key, ms, usual) in clocks {
            if ms != usual {
                self.duration(key, ms);
            }
        }
    }

    fn effect(&mut self, effect: &Effect) {
        self.table("[[tasks.effects]]");
        self.text("key", &effect.key);
        self.duration("after", effect.after_ms);
        if effect.rule.instruments.names().next().is_some() {
            self.texts("instruments", effect.rule.instruments.names());
        }
        if effect.rule.on_unknown != OnUnknown::Escalate {
            self.text("on_unknown", effect.rule.on_unknown.name());
        }
    }

    fn fault(&mut self, story: &Story, fault: &Fault) {
        self.table("[[faults]]");
        match fault.trigger {
            Trigger::At { point, nth } => {
                self.text("at", &point.name());
                if nth != 1 {
                    self.line("nth", nth);
                }
            }
            Trigger::After { ms } => self.duration("after", ms),
        }
        let name = |node: Node| story.node_name(node).to_owned();
        self.text("on", &name(fault.on));
        match fault.act {
            Act::Lose { times } => {
                self.text("do", "lose");
                if times != 1 {
                    self.line("times", times);
                }
            }
            Act::Crash { restart_ms } => {
                self.text("do", "crash");
                if let Some(ms) = restart_ms {
                    self.duration("for", ms);
                }
            }
            Act::Pause { ms } => {
                self.text("do", "pause");
                self.duration("for", ms);
            }
            Act::Cut { peer, way, ms } => {
                self.text("do", "cut");
                self.text("peer", &name(peer));
                if way != Way::Both {
                    self.text("way", way.name());
                }
                if let Some(ms) = ms {
                    self.duration("for", ms);
                }
            }
        }
    }
}
