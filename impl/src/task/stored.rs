//! Tasks between their rows and their types.

use leaseproof_rules::{
    Backoff, COUNT_MAX, EPOCH_MAX, EffectRule, Entry, Epoch, Instruments, OnExhausted, OnPartial, OnUnknown, Policy,
    Reason, Status,
};

use super::{Claimed, EffectEntry, Event, LONGEST_MS, Task};
use crate::Error;
use crate::store::{Lenient, Param, Row};

/// An epoch as stored.
pub(crate) fn epoch(row: &Row, column: &'static str) -> Result<Epoch, Error> {
    let value = row.int(column)?;
    let epoch = Epoch::try_from(value).ok().filter(|epoch| *epoch <= EPOCH_MAX);
    epoch.ok_or_else(|| row.bad(column, format!("{value} is not an epoch")))
}

/// A status as stored.
pub(crate) fn status(row: &Row, column: &'static str) -> Result<Status, Error> {
    let name = row.text(column)?;
    Status::from_name(&name).ok_or_else(|| row.bad(column, format!("{name:?} is not a status")))
}

/// An epoch as bound. Epochs count ownership changes, so the bound is never met; saturating keeps it from wrapping.
pub(crate) fn epoch_param(epoch: Epoch) -> Param {
    Param::int(i64::try_from(epoch).unwrap_or(i64::MAX))
}

/// A duration as bound.
pub(crate) fn ms_param(ms: u64) -> Param {
    Param::int(ms.min(LONGEST_MS) as i64)
}

/// The parameters of [`POLICY_COLUMNS`](crate::store::sql::POLICY_COLUMNS).
pub(crate) fn policy_params(policy: &Policy) -> Vec<Param> {
    vec![
        ms_param(policy.lease_ms),
        ms_param(policy.heartbeat_ms),
        ms_param(policy.fence_margin_ms),
        Param::int(i64::from(policy.max_attempts)),
        Param::int(i64::from(policy.max_interruptions)),
        ms_param(policy.backoff.base_ms),
        Param::int(i64::from(policy.backoff.factor)),
        ms_param(policy.backoff.max_ms),
        Param::Int(policy.expected_run_ms.map(|ms| ms.min(LONGEST_MS) as i64)),
        Param::text(policy.on_exhausted.name()),
        // Strings always are JSON.
        Param::text(serde_json::to_string(&policy.never_retry).unwrap_or_default()),
    ]
}

/// A stored policy, or what is wrong with it.
pub(crate) fn policy(row: &Row) -> Result<Policy, String> {
    let mut read = Lenient::new(row);
    let [lease_ms, heartbeat_ms, fence_margin_ms, base_ms, max_ms] =
        ["lease_ms", "heartbeat_ms", "fence_margin_ms", "backoff_base_ms", "backoff_max_ms"]
            .map(|column| read.count(column, u64::MAX));
    let [max_attempts, max_interruptions, factor] =
        ["max_attempts", "max_interruptions", "backoff_factor"].map(|column| read.count(column, u32::MAX));
    let expected_run_ms = read.opt_int("expected_run_ms").map(|_| read.count("expected_run_ms", u64::MAX));
    let (on_exhausted, never_retry) = (read.text("on_exhausted"), read.text("never_retry"));
    let bad = read.bad();
    if !bad.is_empty() {
        return Err(bad.join("; "));
    }
    if lease_ms > LONGEST_MS {
        return Err(format!("a lease of {lease_ms} ms is longer than 100 years"));
    }
    let policy = Policy {
        lease_ms,
        heartbeat_ms,
        fence_margin_ms,
        max_attempts,
        max_interruptions,
        backoff: Backoff { base_ms, factor, max_ms },
        expected_run_ms,
        on_exhausted: OnExhausted::from_name(&on_exhausted).ok_or_else(|| {
            let accepted = OnExhausted::ALL.map(OnExhausted::name).join(", ");
            format!("on_exhausted is {on_exhausted:?}; accepted are {accepted}")
        })?,
        never_retry: serde_json::from_str(&never_retry)
            .map_err(|error| format!("never_retry is no JSON array of texts: {error}"))?,
    };
    policy.validate().map_err(|error| error.to_string())?;
    Ok(policy)
}

/// The policy of a row of which `bad` could not be read: a task is not run by guesses.
pub(crate) fn policy_unless(bad: Vec<String>, row: &Row) -> Result<Policy, String> {
    match bad.is_empty() {
        true => policy(row),
        false => Err(bad.join("; ")),
    }
}

/// Refuses what the rules know and this queue does not do: to ignore it would promise what is not kept.
///
/// # Errors
/// What is not supported, and what to do instead.
pub(crate) fn supported(rule: EffectRule) -> Result<(), &'static str> {
    if rule.instruments.checkpoints {
        return Err(
            "checkpoints are not supported in one effect: make each step an effect of its own, with its own key",
        );
    }
    if rule.instruments.compensation {
        return Err("compensation is not supported: undo in a task of its own, enqueued by whoever decides to");
    }
    if rule.instruments.outbox {
        return Err("an outbox is not supported: make the call in the task, or enqueue a task of its own for it");
    }
    if rule.on_partial != OnPartial::Resume {
        return Err("on_partial = escalate is not supported: the queue does not know that effects are parts of one");
    }
    Ok(())
}

/// How an effect is declared, as one number: three bits of instruments, two of what to do without.
pub(crate) fn rule_bits(rule: EffectRule) -> i64 {
    let Instruments { idempotency_key, status_query, execution_token, .. } = rule.instruments;
    let on_unknown = match rule.on_unknown {
        OnUnknown::Escalate => 0,
        OnUnknown::Repeat => 1,
        OnUnknown::Skip => 2,
    };
    i64::from(idempotency_key) | i64::from(status_query) << 1 | i64::from(execution_token) << 2 | on_unknown << 3
}

/// The declaration behind the number. What can not be read promises nothing: no instrument, escalate.
pub(crate) fn rule_from_bits(bits: i64) -> EffectRule {
    let on_unknown = match bits >> 3 {
        0 => OnUnknown::Escalate,
        1 => OnUnknown::Repeat,
        2 => OnUnknown::Skip,
        _ => return EffectRule::default(),
    };
    let has = |bit: u32| bits & (1 << bit) != 0;
    let (idempotency_key, status_query, execution_token) = (has(0), has(1), has(2));
    let instruments = Instruments { idempotency_key, status_query, execution_token, ..Instruments::NONE };
    EffectRule { instruments, on_unknown, ..EffectRule::default() }
}

impl Claimed {
    /// Fails only where not even its epoch is known; what else can not be read is told in its policy.
    pub(crate) fn read(row: &Row) -> Result<Claimed, Error> {
        let (id, epoch) = (row.int("id")?, epoch(row, "epoch")?);
        let mut read = Lenient::new(row);
        let claimed = Claimed {
            id,
            epoch,
            kind: read.text("kind"),
            payload: row.bytes("payload")?,
            due_at_ms: read.int("due_at_ms"),
            claimed_at_ms: read.int("claimed_at_ms"),
            attempts: read.count("attempts", COUNT_MAX),
            interruptions: read.count("interruptions", COUNT_MAX),
            policy: Err(String::new()),
        };
        Ok(Claimed { policy: policy_unless(read.bad(), row), ..claimed })
    }
}

impl Task {
    /// Fails only where id, status or epoch can not be read.
    pub(crate) fn read(row: &Row) -> Result<Task, Error> {
        let (id, status, epoch) = (row.int("id")?, status(row, "status")?, epoch(row, "epoch")?);
        let mut read = Lenient::new(row);
        let task = Task {
            id,
            kind: read.text("kind"),
            payload: row.bytes("payload")?,
            unique_key: read.opt_text("unique_key"),
            status,
            epoch,
            due_at_ms: read.int("due_at_ms"),
            owner: read.opt_text("owner"),
            claimed_at_ms: read.opt_int("claimed_at_ms"),
            heartbeat_at_ms: read.opt_int("heartbeat_at_ms"),
            lease_until_ms: read.opt_int("lease_until_ms"),
            attempts: read.count("attempts", COUNT_MAX),
            interruptions: read.count("interruptions", COUNT_MAX),
            reason: read.opt_text("reason").as_deref().and_then(Reason::from_name),
            last_error: read.opt_text("last_error"),
            result: read.opt_text("result"),
            created_at_ms: read.int("created_at_ms"),
            finished_at_ms: read.opt_int("finished_at_ms"),
            record_no: read.int("record_no"),
            policy: policy(row),
            bad: Vec::new(),
        };
        Ok(Task { bad: read.bad(), ..task })
    }
}

impl Event {
    /// Fails only where a status or an epoch can not be read; what else can not be read is added to `bad`.
    pub(crate) fn read(row: &Row, bad: &mut Vec<String>) -> Result<Event, Error> {
        let from_status = match row.opt_text("from_status")? {
            None => None,
            Some(_) => Some(status(row, "from_status")?),
        };
        let (id, to_status, epoch) = (row.int("id")?, status(row, "to_status")?, epoch(row, "epoch")?);
        let mut read = Lenient::new(row);
        let event = Event {
            id,
            at_ms: read.int("at_ms"),
            epoch,
            verb: read.text("verb"),
            actor: read.text("actor"),
            from_status,
            to_status,
            note: read.opt_text("note"),
            effect_key: read.opt_text("effect_key"),
            beat_gap_ms: read.opt_int("beat_gap_ms"),
        };
        bad.extend(read.bad().into_iter().map(|why| format!("record entry {id}: {why}")));
        Ok(event)
    }
}

impl EffectEntry {
    pub(crate) fn read(row: &Row) -> Result<EffectEntry, Error> {
        let key = row.text("effect_key")?;
        let state = row.text("state")?;
        let of_key = |error| match error {
            Error::BadRow { verb, id, why } => Error::BadRow { verb, id, why: format!("effect {key:?}: {why}") },
            other => other,
        };
        let read = || {
            Ok(EffectEntry {
                key: key.clone(),
                epoch: epoch(row, "epoch")?,
                state: Entry::from_name(&state)
                    .ok_or_else(|| row.bad("state", format!("{state:?} is not a journal entry")))?,
                rule: rule_from_bits(row.int("rule")?),
                outcome: row.opt_text("outcome")?,
                at_ms: row.int("at_ms")?,
            })
        };
        read().map_err(of_key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_declaration_of_an_effect_survives_storage() {
        for bits in 0..24 {
            assert_eq!(rule_bits(rule_from_bits(bits)), bits);
        }
    }

    #[test]
    fn a_declaration_from_a_later_build_promises_nothing() {
        for bits in [24, 31, 1 << 20, -1, i64::MIN] {
            assert_eq!(rule_from_bits(bits), EffectRule::default());
        }
    }

    #[test]
    fn what_the_queue_does_not_do_is_refused_and_not_ignored() {
        let has = |instruments| supported(EffectRule { instruments, ..EffectRule::default() });
        let why = |instruments| has(instruments).expect_err("it is not supported");
        assert!(why(Instruments { checkpoints: true, ..Instruments::NONE }).contains("checkpoints"));
        assert!(why(Instruments { compensation: true, ..Instruments::NONE }).contains("compensation"));
        assert!(why(Instruments { outbox: true, ..Instruments::NONE }).contains("outbox"));
        let partial = EffectRule { on_partial: OnPartial::Escalate, ..EffectRule::default() };
        assert!(supported(partial).is_err_and(|why| why.contains("on_partial")));
        let (idempotency_key, status_query, execution_token) = (true, true, true);
        let all = Instruments { idempotency_key, status_query, execution_token, ..Instruments::NONE };
        assert_eq!(has(all), Ok(()));
    }
}
