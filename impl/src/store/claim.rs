//! The claim of several tasks, and what is done where one of them refuses it.

use leaseproof_rules::Verb;

use super::{Param, Row, Store, connection};
use crate::task::Claimed;
use crate::{Error, tags};

/// Tasks that are tried one by one where a claim of several fails for one of them.
const MOST_TRIED: i64 = 1_000;

/// Oldest due time first: databases return the rows of an UPDATE in any order.
///
/// A row of which not even the epoch can be read can not be handed out; its lease ends by itself.
pub(super) fn claimed(rows: &[Row]) -> Vec<Claimed> {
    let mut claimed = Vec::with_capacity(rows.len());
    for row in rows {
        match Claimed::read(row) {
            Ok(task) => claimed.push(task),
            Err(error) => tracing::error!(%error, "claim"),
        }
    }
    claimed.sort_by_key(|task| (task.due_at_ms, task.id));
    claimed
}

impl Store {
    /// Takes up to `limit` due tasks for `owner`, by compare-and-set (P2), oldest due time first. The loser of a race
    /// simply gets fewer tasks, or none.
    ///
    /// # Errors
    /// The database's. After [`Error::Unknown`] tasks may have been claimed; their leases run out unattended.
    pub async fn claim(&self, owner: &str, limit: u32) -> Result<Vec<Claimed>, Error> {
        #[cfg(feature = "ablation")]
        if !self.guards.has(leaseproof_rules::Guard::CasAtClaim) {
            return self.claim_blindly(owner, limit).await;
        }
        let mut params = vec![Param::text(owner), Param::int(i64::from(limit))];
        params.extend(self.token(Verb::Claim)?);
        match self.run(Verb::Claim.name(), &self.texts.claim, params).await {
            Ok(rows) => Ok(claimed(&rows)),
            Err(error) if connection::is_of_a_row(&error) => self.claim_one_by_one(owner, limit, error).await,
            Err(error) => Err(error),
        }
    }

    /// A row that refuses to be claimed, for what another program has put there, must not keep the others from it: so
    /// each is claimed by itself. `failed`: what the claim of all said.
    async fn claim_one_by_one(&self, owner: &str, limit: u32, failed: Error) -> Result<Vec<Claimed>, Error> {
        let due = self.run(tags::CLAIM_READ, &self.texts.due, vec![Param::int(MOST_TRIED)]).await?;
        let mut tasks = Vec::new();
        for row in &due {
            if tasks.len() >= limit as usize {
                break;
            }
            let id = row.int("id")?;
            let mut params = vec![Param::text(owner), Param::int(1)];
            params.extend(self.token(Verb::Claim)?);
            params.push(Param::int(id));
            match self.run(Verb::Claim.name(), &self.texts.claim_of, params).await {
                Ok(rows) => tasks.extend(claimed(&rows)),
                Err(error) if connection::is_of_a_row(&error) => {
                    tracing::error!(task = id, %error, "can not be claimed")
                }
                // What was claimed until here has to be run.
                Err(error) if !tasks.is_empty() => {
                    tracing::warn!(%error, "claim");
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        match tasks.is_empty() && !due.is_empty() {
            true => Err(failed),
            false => Ok(tasks),
        }
    }
}
