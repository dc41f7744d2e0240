//! Asking third parties what became of a call (E2).

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use leaseproof_rules::{Answer, EffectRule, Entry, Epoch, Guards, Unknown, idempotency_key, query_token, settle};

/// What a third party is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// The task.
    pub task_id: i64,
    /// The effect's key within the task.
    pub effect_key: String,
    /// The idempotency key that the call carried.
    pub idempotency_key: String,
    /// An execution token newer than the call's. A third party that checks tokens (E6) refuses the call from then on,
    /// which is what makes "not done" final.
    pub token: Epoch,
}

impl Question {
    /// The question about the call that the run with this epoch may have made.
    pub(crate) fn about(task_id: i64, effect_key: &str, epoch: Epoch, guards: Guards) -> Question {
        Question {
            task_id,
            effect_key: effect_key.to_owned(),
            idempotency_key: idempotency_key(task_id, effect_key, epoch, guards),
            token: query_token(epoch, guards),
        }
    }
}

type Asking = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// The status queries that a process can make, by task kind and effect key. Cheap to clone.
#[derive(Clone, Default)]
pub struct StatusQueries {
    by_effect: Arc<BTreeMap<(String, String), Ask>>,
}

type Ask = Arc<dyn Fn(Question) -> Asking + Send + Sync>;

impl StatusQueries {
    /// None.
    pub fn new() -> StatusQueries {
        StatusQueries::default()
    }

    /// Adds the query for one effect of one kind of task.
    pub fn with<F, Fut>(mut self, kind: impl Into<String>, effect_key: impl Into<String>, ask: F) -> StatusQueries
    where
        F: Fn(Question) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        let ask: Ask = Arc::new(move |question| Box::pin(ask(question)));
        Arc::make_mut(&mut self.by_effect).insert((kind.into(), effect_key.into()), ask);
        self
    }

    /// The rule of an effect as this process can serve it: an effect that nobody here can ask about counts as one that
    /// can not be asked about, so that its task goes to a person instead of waiting for ever.
    pub(crate) fn able(&self, kind: &str, key: &str, mut rule: EffectRule) -> EffectRule {
        rule.instruments.status_query &= self.by_effect.contains_key(&(kind.to_owned(), key.to_owned()));
        rule
    }

    /// What an answer says of an effect, to be journalled; `None` if it settles nothing.
    pub(crate) fn learnt(&self, kind: &str, key: &str, rule: EffectRule, answer: Option<Answer>) -> Option<Entry> {
        match settle(self.able(kind, key, rule), answer) {
            Unknown::Settled { learnt } => learnt,
            Unknown::Ask | Unknown::Later | Unknown::Escalate => None,
        }
    }

    /// Asks. No answer within `limit` is [`Answer::Unavailable`], and so is a query that panics: it is one task's question,
    /// and the sweeper has others.
    pub(crate) async fn ask(&self, kind: &str, question: Question, limit: Duration) -> Answer {
        let Some(ask) = self.by_effect.get(&(kind.to_owned(), question.effect_key.clone())) else {
            return Answer::Unavailable;
        };
        let asking = AssertUnwindSafe(async { ask(question).await }).catch_unwind();
        match tokio::time::timeout(limit, asking).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => {
                tracing::error!(kind, "a status query has panicked");
                Answer::Unavailable
            }
            Err(_) => Answer::Unavailable,
        }
    }
}
