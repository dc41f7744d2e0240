//! What only a build for ablations has: the store without some of its guards, to show what they are for.

use leaseproof_rules::{Guards, Verb};

use super::claim::claimed;
use super::open::texts;
use super::{Param, Store};
use crate::task::Claimed;
use crate::{Error, tags};

impl Store {
    /// The same store with some guards removed.
    pub(crate) fn with_guards(self, guards: Guards) -> Store {
        Store { texts: texts(&self.connections, guards), guards, ..self }
    }

    /// A claim without compare-and-set: reads what is due, and then takes it by its id.
    pub(super) async fn claim_blindly(&self, owner: &str, limit: u32) -> Result<Vec<Claimed>, Error> {
        let params = vec![Param::int(i64::from(limit))];
        let due = self.run(tags::CLAIM_READ, &self.texts.due, params).await?;
        if due.is_empty() {
            return Ok(Vec::new());
        }
        let mut params = vec![Param::text(owner)];
        for row in &due {
            params.push(Param::int(row.int("id")?));
        }
        params.extend(self.token(Verb::Claim)?);
        Ok(claimed(&self.run(Verb::Claim.name(), &self.texts.blind_claim(due.len()), params).await?))
    }
}
