//! What a world is made of: how many tasks and executors, the rules in force, what may go wrong.

use leaseproof_rules::{
    Backoff, EffectRule, Guard, Guards, Instruments, OnExhausted, OnPartial, OnUnknown, Policy, Progress, Saga,
};

use crate::extra::Extras;
use crate::fail_over::AfterFailOver;
use crate::knowledge::Strategy;
use crate::state::{MAX_EPOCH, MAX_PARTS, MAX_TASKS, Shape, State, Task};

/// What the protocol needs to know, in the free worlds and in stories alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// How many tasks and slots there are.
    pub shape: Shape,
    /// The policy of every task.
    pub policy: Policy,
    /// The guards in force.
    pub guards: Guards,
    /// How it is decided: by the rules, but for what an examination of knowledge replaces.
    pub strategy: Strategy,
    /// By task: how its outside call is declared, if it makes one.
    pub effects: [Option<EffectRule>; MAX_TASKS],
    /// A delayed task becomes due when the clock says so, not at once.
    pub timed: bool,
    /// What is left out of the design, or not kept by the third party although it is declared. `None` but to show what
    /// depends on it.
    pub flaw: Option<Flaw>,
}

impl Setup {
    /// The task that stands for what this task's SUCCESS puts into the outbox (E3): the next one, if it is declared so.
    pub fn entry_of(&self, task: usize) -> Option<usize> {
        let next = task + 1;
        let is_entry = |rule: &EffectRule| rule.instruments.outbox;
        self.effects.get(next)?.as_ref().is_some_and(is_entry).then_some(next)
    }

    /// Whether this task stands for an entry of an outbox.
    pub fn is_entry(&self, task: usize) -> bool {
        task > 0 && self.entry_of(task - 1) == Some(task)
    }

    /// All tasks as they are at first.
    pub fn start(&self) -> State {
        let mut state = State::NEW;
        for entry in (0..self.shape.tasks).filter_map(|task| self.entry_of(task)) {
            state.tasks[entry] = Task::UNWRITTEN;
        }
        state
    }

    /// In how many steps a task's effect is made, each with journal entries of its own.
    pub fn steps_of(&self, task: usize) -> usize {
        if self.effects[task].is_some_and(|rule| rule.instruments.checkpoints) { self.shape.parts } else { 1 }
    }

    /// What can be seen of a checkpointed effect of which the journal has so many steps as done or past.
    ///
    /// `back`: so many are left to undo.
    pub fn progress(&self, task: usize, recorded: u8, back: bool) -> Option<Progress> {
        let rule = self.effects[task].filter(|rule| rule.instruments.checkpoints)?;
        let of = u32::try_from(self.shape.parts).unwrap_or(u32::MAX);
        let saga = match (back, rule.instruments.compensation) {
            (true, _) => Saga::Back,
            (false, true) => Saga::Forward,
            (false, false) => Saga::None,
        };
        Some(Progress { done: recorded.into(), of, on_partial: rule.on_partial, saga })
    }
}

/// What an instrument rests on, taken away.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Flaw {
    /// A re-run begins at the first step, whatever is recorded (E4).
    FromTheStart,
    /// The outbox entry is written after SUCCESS, in a transaction of its own (E3).
    EntryAfterSuccess,
    /// Steps are undone from the first to the last (E5).
    UndoesInOrder,
    /// What comes before the last recorded step is not undone (E5).
    UndoesOnlyTheLast,
}

/// Which ends a handler may choose, besides success.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ends {
    /// An error that may be retried, at any moment of the work.
    pub error: bool,
    /// An error that is never retried.
    pub bad_input: bool,
    /// It may hang, at any moment of the work, for ever.
    pub hang: bool,
}

/// What may go wrong around the processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Faults {
    /// An executor dies, or stops itself. It is there again at once, as a new incarnation that knows nothing.
    pub crash: bool,
    /// A request is lost.
    pub lost_request: bool,
    /// A reply is lost.
    pub lost_reply: bool,
    /// The third party stops in the middle of an effect of several parts, without a reply (E-C).
    pub partial: bool,
    /// The clocks of the executors are wrong by any amount, and stay so.
    pub wrong_clocks: bool,
    /// The database's clock is set back, by any amount: a lease that had ended is live again, what was due is not. (Set
    /// forward it ends leases early, which may happen in every world.)
    pub clock_back: bool,
    /// All executors die in the same moment.
    pub deploy: bool,
    /// Nobody takes the connection for a call, and it is surely not sent.
    pub not_sent: bool,
    /// A call is delivered to the third party twice.
    pub calls_twice: bool,
    /// Faults are unbounded in number but come to an end some day. Needed for liveness: a system that loses every
    /// message for ever resolves nothing. Doubles the states.
    pub calm_some_day: bool,
}

impl Default for Faults {
    /// What every world has: all but a clock set back, a deploy, and a call that is never sent or delivered twice.
    fn default() -> Faults {
        Faults {
            crash: true,
            lost_request: true,
            lost_reply: true,
            partial: true,
            wrong_clocks: true,
            clock_back: false,
            deploy: false,
            not_sent: false,
            calls_twice: false,
            calm_some_day: true,
        }
    }
}

/// A free world: the protocol without a clock. Leases end, processes stand still and messages are late as it pleases
/// the checker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct World {
    /// Its name in reports, e.g. `1 task × 3 executors`.
    pub name: String,
    /// The protocol's parameters.
    pub setup: Setup,
    /// How handlers may end.
    pub ends: Ends,
    /// What may go wrong.
    pub faults: Faults,
    /// How often a person lets a task run again. `None`: nobody is at the desk.
    pub reruns: Option<u8>,
    /// How many persons are at the desk then, 1 or 2. They do not speak with each other.
    pub persons: u8,
    /// How often executors put tasks back unharmed at most, before they stop in good order.
    pub releases: u8,
    /// The database may lose its last commit, once, and this is then done about it. `None`: it keeps what it commits.
    pub fail_over: Option<AfterFailOver>,
    /// The person lets a task run again although a call of it may still arrive, on what is known at that moment. Off but
    /// to show that no rule of the queue can make up for it.
    pub hasty_person: bool,
}

/// A world that can not be built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WorldError {
    /// More than the state has room for.
    #[error(
        "{tasks} tasks and {executors} executors; accepted: 1 to {max_tasks} tasks, 1 to {max_executors} executors"
    )]
    Size {
        /// Asked for.
        tasks: usize,
        /// Asked for.
        executors: usize,
        /// Accepted.
        max_tasks: usize,
        /// Accepted.
        max_executors: usize,
    },
    /// The budgets allow more claims than there are epochs.
    #[error("the budgets allow epoch {needed}; accepted: below {MAX_EPOCH}")]
    Epochs {
        /// The highest epoch that can be reached.
        needed: u32,
    },
    /// The last commit is kept of one row.
    #[error("a database that loses its last commit with {tasks} tasks; accepted: 1")]
    LostCommit {
        /// Asked for.
        tasks: usize,
    },
    /// An effect that can not be declared like this.
    #[error("{why}")]
    Effect {
        /// What does not go together.
        why: &'static str,
    },
    /// More parts than the state has room for.
    #[error("an effect of {parts} parts; accepted: 1 to {max}, which is what epochs up to {needed} leave room for")]
    Parts {
        /// Asked for.
        parts: usize,
        /// Accepted.
        max: usize,
        /// The highest epoch that can be reached.
        needed: u32,
    },
}

/// Tasks of a free world at most.
pub const FREE_TASKS: usize = 2;
/// Executors of a free world at most; each has one slot.
pub const FREE_RUNS: usize = 3;

impl World {
    /// A world of the lease design with all guards, no outside effect, handlers that succeed, all faults, nobody at
    /// the desk, and one retry and one reclaim before a person is asked.
    ///
    /// # Errors
    /// More tasks or executors than a free world has room for.
    pub fn lease(tasks: usize, executors: usize) -> Result<World, WorldError> {
        if !(1..=FREE_TASKS).contains(&tasks) || !(1..=FREE_RUNS).contains(&executors) {
            return Err(WorldError::Size { tasks, executors, max_tasks: FREE_TASKS, max_executors: FREE_RUNS });
        }
        let policy = Policy {
            max_attempts: 2,
            max_interruptions: 1,
            backoff: Backoff { base_ms: 1_000, factor: 1, max_ms: 1_000 },
            expected_run_ms: None,
            ..Policy::default()
        };
        let plural = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
        Ok(World {
            name: format!("{} × {}", plural(tasks, "task"), plural(executors, "executor")),
            setup: Setup {
                shape: Shape { tasks, runs: executors, parts: 1, extras: Extras::NONE },
                policy,
                guards: Guards::ALL,
                strategy: Strategy::RULES,
                effects: [None; MAX_TASKS],
                timed: false,
                flaw: None,
            },
            ends: Ends::default(),
            faults: Faults::default(),
            reruns: None,
            persons: 1,
            releases: 0,
            fail_over: None,
            hasty_person: false,
        })
    }

    /// Every task makes one outside call, declared like this.
    pub fn effect(mut self, instruments: Instruments, on_unknown: OnUnknown) -> World {
        let rule = EffectRule { instruments, on_unknown, on_partial: OnPartial::Resume };
        for effect in &mut self.setup.effects[..self.setup.shape.tasks] {
            *effect = Some(rule);
        }
        self.setup.shape.extras.saga = instruments.compensation;
        let mut words = Vec::new();
        for (has, word) in [
            (instruments.idempotency_key, "key"),
            (instruments.status_query, "query"),
            (instruments.execution_token, "token"),
            (instruments.checkpoints, "checkpoints"),
            (instruments.outbox, "outbox"),
            (instruments.compensation, "compensation"),
        ] {
            words.extend(has.then_some(word));
        }
        let otherwise = format!("else {}", on_unknown.name());
        words.push(&otherwise);
        self.name += &format!(", a call ({})", words.join(", "));
        self
    }

    /// The second of two tasks is what the first one's SUCCESS writes into the outbox, and makes an outside call declared
    /// like this. The executors are workers and relays alike.
    pub fn outbox(self, instruments: Instruments, on_unknown: OnUnknown) -> World {
        let mut world = self.effect(Instruments { outbox: true, ..instruments }, on_unknown);
        world.setup.effects[0] = None;
        world
    }

    /// Each call consists of this many parts: with checkpoints each is a step, else the third party may stop in between.
    pub fn parts(mut self, parts: usize) -> World {
        self.setup.shape.parts = parts;
        self.name += &format!(", {parts} parts");
        self
    }

    /// What is known to be done in part goes to a person.
    pub fn partial_to_a_person(mut self) -> World {
        for rule in self.setup.effects.iter_mut().flatten() {
            rule.on_partial = OnPartial::Escalate;
        }
        self.name += ", partial to a person";
        self
    }

    /// Something that an instrument rests on is missing.
    pub fn flaw(mut self, flaw: Flaw) -> World {
        self.setup.flaw = Some(flaw);
        self.name += &format!(", {flaw:?}");
        self
    }

    /// Handlers may end with an error that may be retried.
    pub fn errors(mut self) -> World {
        self.ends.error = true;
        self.name += ", errors";
        self
    }

    /// Handlers may meet bad input.
    pub fn bad_input(mut self) -> World {
        self.ends.bad_input = true;
        self.name += ", bad input";
        self
    }

    /// Handlers may hang; a bound on the run time is set.
    pub fn hangs(mut self) -> World {
        self.ends.hang = true;
        self.setup.policy.expected_run_ms = Some(60_000);
        self.name += ", hangs";
        self
    }

    /// A person is at the desk, and lets tasks run again this often.
    pub fn reruns(mut self, reruns: u8) -> World {
        self.reruns = Some(reruns);
        self.name += &format!(", a person ({reruns} reruns)");
        self
    }

    /// A second person is at the desk.
    pub fn two_persons(mut self) -> World {
        self.persons = 2;
        self.name += ", two persons";
        self
    }

    /// The person does not wait until no call of the task can arrive any more.
    pub fn hasty(mut self) -> World {
        self.hasty_person = true;
        self.name += ", hasty";
        self
    }

    /// The two budgets.
    pub fn budgets(mut self, max_attempts: u32, max_interruptions: u32) -> World {
        self.setup.policy.max_attempts = max_attempts;
        self.setup.policy.max_interruptions = max_interruptions;
        self.name += &format!(", budgets {max_attempts}/{max_interruptions}");
        self
    }

    /// Exhausted attempts end in FAIL.
    pub fn fail_when_exhausted(mut self) -> World {
        self.setup.policy.on_exhausted = OnExhausted::Fail;
        self.name += ", then FAIL";
        self
    }

    /// What may go wrong.
    pub fn faults(mut self, faults: Faults) -> World {
        self.faults = faults;
        self
    }

    /// The guards in force.
    pub fn guards(mut self, guards: Guards) -> World {
        self.setup.guards = guards;
        self
    }

    /// Checks that every epoch that can be reached fits the state.
    ///
    /// # Errors
    /// The budgets allow too many claims.
    pub fn validate(&self) -> Result<(), WorldError> {
        let (policy, guards) = (&self.setup.policy, self.setup.guards);
        // Each run is a claim and an end; a rerun is one more step and gives both budgets back. Without compare-and-set
        // at the claim there can be a blind claim on top of every step.
        let runs = policy.max_attempts.saturating_add(policy.max_interruptions);
        // Without a bound the search ends where the budget is broken, two runs later at most.
        let bounded = [Guard::BoundedAttempts, Guard::BoundedInterruptions].map(|guard| guards.has(guard));
        let runs = runs.saturating_add(2 * u32::from(bounded != [true; 2])).saturating_add(self.releases.into());
        // The commit that is lost is made again, with an epoch above it.
        let runs = runs.saturating_add(self.fail_over.is_some().into());
        // A saga that turns gets both budgets back.
        let lives = u32::from(self.reruns.unwrap_or(0)) + 1 + u32::from(self.setup.shape.extras.saga);
        let blind = if guards.has(Guard::CasAtClaim) { 1 } else { 2 };
        let needed = runs.saturating_mul(2).saturating_add(1).saturating_mul(lives).saturating_mul(blind);
        if needed >= u32::from(MAX_EPOCH) {
            return Err(WorldError::Epochs { needed });
        }
        for rule in self.setup.effects.into_iter().flatten() {
            rule.validate().map_err(|why| WorldError::Effect { why })?;
        }
        if self.fail_over.is_some() && self.setup.shape.tasks != 1 {
            return Err(WorldError::LostCommit { tasks: self.setup.shape.tasks });
        }
        // Calls under way are bits, by token and step.
        let (parts, room) = (self.setup.shape.parts, u32::BITS / (needed + 1));
        let max = MAX_PARTS.min(room as usize);
        if (1..=max).contains(&parts) { Ok(()) } else { Err(WorldError::Parts { parts, max, needed }) }
    }
}
