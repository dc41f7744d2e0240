//! Requests that are delivered twice.
//!
//! A write on its way to the database may be copied by the network. What becomes of the write itself is as ever, and the
//! copy arrives at any time later, however long, or never. If the write is lost, the copy is simply late. So this also
//! shows what the free worlds take for granted, that an exchange with the database may be one step: a late request does
//! what it would have done at once, or is refused.

use leaseproof_rules::{Status, Verb};

use crate::bits::Coder;
use crate::boots;
use crate::database::{Request, apply};
use crate::free::{Action, Fate, LeaseModel};
use crate::person::Act;
use crate::state::{EPOCH_BITS, State};

/// Whose write is copied.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Source {
    /// An executor's.
    Run(u8),
    /// A sweeper's.
    Sweeper {
        /// Which.
        by: u8,
        /// About which task.
        task: u8,
    },
    /// A person's.
    Person {
        /// Which.
        by: u8,
        /// What is decided.
        act: Act,
    },
}

impl Source {
    /// Whose write a step is, if it is one that arrives.
    fn of(action: &Action) -> Option<Source> {
        match *action {
            Action::Exchange { run, fate: Fate::Fine } => Some(Source::Run(run)),
            Action::SweeperWrites { by, task, fate: Fate::Fine } => Some(Source::Sweeper { by, task }),
            Action::Decide { by, act } => Some(Source::Person { by, act }),
            _ => None,
        }
    }
}

/// A write under way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Sent {
    /// The write.
    pub request: Request,
    /// The executor that has sent it; 0 for others.
    pub slot: u8,
}

impl Sent {
    pub(crate) fn code(sent: &mut Option<Sent>, c: &mut impl Coder) {
        let mut present = sent.is_some();
        c.field(&mut present);
        if !present {
            return;
        }
        let blank = Sent { request: Request::plain(0, Verb::Claim, Status::Running, 0), slot: 0 };
        let Sent { request, slot } = sent.get_or_insert(blank);
        let (mut task, mut verb) = (request.task as u8, request.verb as u8);
        c.small(&mut task, 1);
        c.small(&mut verb, 4);
        (request.task, request.verb) = (task.into(), Verb::ALL[usize::from(verb)]);
        c.field(&mut request.to);
        c.small(&mut request.epoch, EPOCH_BITS);
        c.field(&mut request.learnt);
        c.field(&mut request.reason);
        c.small(&mut request.step, 2);
        c.field(&mut request.turns);
        c.small(slot, 2);
    }
}

impl LeaseModel {
    /// Of the writes among these steps each may be copied.
    pub(crate) fn copy_steps(&self, state: &State, from: usize, out: &mut Vec<Action>) {
        if state.extra.copy.is_some() {
            out.push(Action::CopyArrives);
        } else if self.world.setup.shape.extras.copies && !state.calm {
            let sources: Vec<Source> = out[from..].iter().filter_map(Source::of).collect();
            let copied = sources.into_iter().filter(|of| self.written(state, *of).is_some());
            out.extend(copied.map(|of| Action::Copy { of }));
        }
    }

    /// What is on its way to the database.
    pub(crate) fn written(&self, state: &State, of: Source) -> Option<Request> {
        let fate = Fate::Fine;
        match of {
            Source::Run(run) => self.request_of(state, &Action::Exchange { run, fate }),
            Source::Sweeper { by, task } => self.request_of(state, &Action::SweeperWrites { by, task, fate }),
            Source::Person { by, act } => self.request_of(state, &Action::Decide { by, act }),
        }
    }

    pub(crate) fn copy(&self, state: &mut State, of: Source) {
        let slot = if let Source::Run(run) = of { run } else { 0 };
        // The delay is for clocks, and here is none.
        let request = self.written(state, of).map(|request| Request { delay_ms: 0, ..request });
        state.extra.copy = request.map(|request| Sent { request, slot });
        // The others can not but write what they are about to; a person could still decide something else.
        if let Source::Person { by, act } = of {
            self.step(state, Action::Decide { by, act });
        }
    }

    /// Nobody hears the reply.
    pub(crate) fn copy_arrives(&self, state: &mut State) {
        let Some(Sent { request, slot }) = state.extra.copy.take() else { return };
        match request.verb {
            Verb::Claim => boots::write(&self.world.setup, state, slot.into(), request),
            _ => apply(&self.world.setup, state, request),
        };
    }
}
