//! Starts of one executor told apart (A2).
//!
//! The first executor of such a world has an instance slot, and two places where a start of it can be: an address each,
//! say. A start registers for the slot, and every other start of the slot is superseded from then on, with all rows that
//! it owns: they are taken back at once, without waiting for the lease. What was there before may be dead or only
//! paused; paused, it goes on some day as a zombie. Places are used again and again, as addresses and process ids are. A
//! further executor has no instance slot: of its death only the lease tells.

use leaseproof_rules::{Guard, Judgement, Refusal, Status, Verb};

use crate::database::{Request, apply};
use crate::executor;
use crate::extra::Boot;
use crate::state::{Phase, State};
use crate::world::Setup;

/// The places of the executor that has an instance slot.
pub const PLACES: usize = 2;

/// Whether this place is not, or no longer, that of the executor's newest start.
fn is_superseded(setup: &Setup, state: &State, slot: usize) -> bool {
    setup.shape.extras.boots && slot < PLACES && state.extra.boots[slot] != Boot::Current
}

/// Whether the process at this place may look for work: not before it is started, and not once it is replaced.
pub fn looks_for_work(setup: &Setup, state: &State, slot: usize) -> bool {
    !is_superseded(setup, state, slot)
}

/// Whether this place is that of the newest start of an executor with an instance slot.
pub fn starts_anew(setup: &Setup, state: &State, slot: usize) -> bool {
    setup.shape.extras.boots && slot < PLACES && state.extra.boots[slot] == Boot::Current
}

/// Whether a new start can register at this place: where the newest one is, which is then dead, or where nobody is.
pub fn can_start(setup: &Setup, state: &State, slot: usize) -> bool {
    let free = state.runs[slot].phase == Phase::Idle;
    setup.shape.extras.boots && slot < PLACES && (free || state.extra.boots[slot] == Boot::Current)
}

/// A write of the executor at this place. A start that is superseded claims nothing: it would be taken from it at once.
pub fn write(setup: &Setup, state: &mut State, slot: usize, request: Request) -> Judgement {
    let claims = request.verb == Verb::Claim;
    if claims && is_superseded(setup, state, slot) {
        return Judgement::Refused(Refusal::ConditionFails);
    }
    let judgement = apply(setup, state, request);
    if claims && setup.shape.extras.boots && matches!(judgement, Judgement::Applied { .. }) {
        state.tasks[request.task].owner = slot as u8;
    }
    judgement
}

/// A new start registers at this place, for the slot of the executor. Each has a boot id of its own; without its guard
/// an address stands for whoever is there.
pub fn start(setup: &Setup, state: &mut State, slot: usize) {
    let by_boot_id = setup.guards.has(Guard::BootIdentity);
    let other = PLACES - 1 - slot;
    if state.extra.boots[slot] == Boot::Current {
        executor::cancel(state, slot);
        if by_boot_id {
            supersede(setup, state, slot);
        }
        return;
    }
    // An address that is known as superseded stays so, whoever is there now. Of the process at the other place it is at
    // most a zombie that is left: it is replaced.
    if by_boot_id || state.extra.boots[slot] == Boot::Unborn {
        state.extra.boots[slot] = Boot::Current;
        supersede(setup, state, other);
    }
    state.extra.boots[other] = Boot::Superseded;
}

/// The process at this place dies and is there again, by a new start if it has an instance slot.
pub fn die(setup: &Setup, state: &mut State, slot: usize) {
    match starts_anew(setup, state, slot) {
        true => start(setup, state, slot),
        false => executor::cancel(state, slot),
    }
}

/// What the start at this place owns is known to be lost.
fn supersede(setup: &Setup, state: &mut State, slot: usize) {
    for task in &mut state.tasks[..setup.shape.tasks] {
        task.superseded |= task.status == Status::Running && usize::from(task.owner) == slot;
    }
}
