//! A third party that is called and asked, answers from a script, and keeps a ledger.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use leaseproof_queue::rules::{Answer, EffectRule};
use leaseproof_queue::{Call, CallError, Ctx, Effect, Question, StatusQueries, TaskError, WorkerBuilder};

use crate::common::Db;
use crate::support::worker;

/// Cheap to clone; clones are the same third party.
#[derive(Clone, Default)]
pub struct ThirdParty {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    calls: Vec<Call>,
    questions: Vec<Question>,
    outcomes: VecDeque<Result<String, CallError>>,
    answers: VecDeque<Answer>,
}

/// The outcome of a call whose answer never came.
pub fn no_answer() -> Result<String, CallError> {
    Err(CallError::Unknown("no answer".into()))
}

impl ThirdParty {
    /// One that brings these outcomes in turn, then `"receipt"`.
    pub fn bringing(outcomes: impl IntoIterator<Item = Result<String, CallError>>) -> ThirdParty {
        let third = ThirdParty::default();
        third.inner.lock().unwrap().outcomes.extend(outcomes);
        third
    }

    /// Gives these answers in turn, then none.
    pub fn answering(self, answers: impl IntoIterator<Item = Answer>) -> ThirdParty {
        self.inner.lock().unwrap().answers.extend(answers);
        self
    }

    pub fn call(&self, call: Call) -> Result<String, CallError> {
        let mut inner = self.inner.lock().unwrap();
        inner.calls.push(call);
        inner.outcomes.pop_front().unwrap_or_else(|| Ok("\"receipt\"".into()))
    }

    pub fn calls(&self) -> Vec<Call> {
        self.inner.lock().unwrap().calls.clone()
    }

    pub fn questions(&self) -> Vec<Question> {
        self.inner.lock().unwrap().questions.clone()
    }

    /// The query for this effect of the kind `kind`, added to others.
    pub fn asked_about(&self, queries: StatusQueries, effect_key: &str) -> StatusQueries {
        let inner = self.inner.clone();
        queries.with("kind", effect_key, move |question| {
            let mut inner = inner.lock().unwrap();
            inner.questions.push(question);
            let answer = inner.answers.pop_front().unwrap_or(Answer::Unavailable);
            async move { answer }
        })
    }

    /// The query for the effect `charge`.
    pub fn queries(&self) -> StatusQueries {
        self.asked_about(StatusQueries::new(), "charge")
    }

    /// A worker whose handler makes the effect `charge` here, and then ends as told, by the number of failed attempts.
    pub async fn charging(
        &self,
        db: &Db,
        rule: EffectRule,
        then: impl Fn(u32) -> Result<(), TaskError> + Clone + Send + Sync + 'static,
    ) -> WorkerBuilder {
        let third = self.clone();
        worker(db, move |ctx| {
            let (third, then) = (third.clone(), then.clone());
            async move {
                let effect = third.effect(&ctx, "charge", rule).await?;
                then(ctx.task().attempts)?;
                Ok(match effect {
                    Effect::Done(outcome) => outcome.unwrap_or_else(|| "null".into()),
                    Effect::Skipped => "\"skipped\"".into(),
                })
            }
        })
        .await
    }

    /// One effect of a handler.
    pub async fn effect(&self, ctx: &Ctx, key: &str, rule: EffectRule) -> Result<Effect, TaskError> {
        ctx.effect(key, rule, async |call| self.call(call)).await
    }
}
