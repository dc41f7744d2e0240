//! The heartbeat of many leases.

use std::collections::BTreeSet;
use std::time::Duration;

use leaseproof_rules::{Epoch, Verb};

use super::{HEARTBEAT_BATCH, Param, Store, connection};
use crate::task::{self, epoch_param};
use crate::{Error, tags};

type Claim = (i64, Epoch);

/// What became of a heartbeat of several leases. Those in neither list are lost.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Beaten {
    /// Renewed, in order of id and epoch.
    pub renewed: Vec<(i64, Epoch)>,
    /// Not tried, or refused for what their row holds: neither renewed nor known to be lost. In order of id and epoch.
    pub held_up: Vec<(i64, Epoch)>,
}

impl Store {
    /// Renews leases, each fenced by its own epoch. One statement for up to 500 leases; one row that can not be written
    /// keeps no other lease from being renewed.
    ///
    /// # Errors
    /// The database's. After [`Error::Unknown`] some may have been renewed.
    pub async fn beat(&self, leases: &[(i64, Epoch)], deadline: Duration) -> Result<Beaten, Error> {
        let mut beaten = Beaten::default();
        let mut batches: Vec<&[(i64, Epoch)]> = leases.chunks(HEARTBEAT_BATCH).rev().collect();
        while let Some(batch) = batches.pop() {
            match self.beat_at_once(batch, deadline).await {
                Ok(renewed) => {
                    beaten.held_up.extend(self.held_up(batch, &renewed, deadline).await);
                    beaten.renewed.extend(renewed);
                }
                // Halves find the one row in a few steps.
                Err(error) if connection::is_of_a_row(&error) && batch.len() > 1 => {
                    let (first, second) = batch.split_at(batch.len() / 2);
                    batches.extend([second, first]);
                }
                Err(error) if connection::is_of_a_row(&error) => {
                    tracing::error!(task = batch.first().map(|(id, _)| id), %error, "can not be renewed");
                    beaten.held_up.extend(batch);
                }
                Err(error) => return Err(error),
            }
        }
        beaten.renewed.sort_unstable();
        beaten.held_up.sort_unstable();
        beaten.held_up.dedup();
        Ok(beaten)
    }

    /// Those of a batch that were not renewed although their leases are live: somebody else has locked the row. Usually all
    /// were renewed, and nothing is asked.
    async fn held_up(&self, batch: &[Claim], renewed: &[Claim], deadline: Duration) -> Vec<Claim> {
        let renewed: BTreeSet<Claim> = renewed.iter().copied().collect();
        let missing: BTreeSet<Claim> = batch.iter().copied().filter(|claim| !renewed.contains(claim)).collect();
        let statement = match missing.is_empty() {
            true => None,
            false => self.texts.live_leases(missing.len()),
        };
        let Some(statement) = statement else { return Vec::new() };
        let params = missing.iter().map(|(id, _)| Param::int(*id)).collect();
        match self.connections.run(tags::HELD_UP, &statement, params, deadline).await {
            Ok(rows) => {
                let live = rows.iter().filter_map(|row| Some((row.int("id").ok()?, task::epoch(row, "epoch").ok()?)));
                live.filter(|claim| missing.contains(claim)).collect()
            }
            // Nothing is known of them: they are not lost for it.
            Err(error) => {
                tracing::warn!(%error, "heartbeat");
                missing.into_iter().collect()
            }
        }
    }

    async fn beat_at_once(&self, batch: &[(i64, Epoch)], deadline: Duration) -> Result<Vec<(i64, Epoch)>, Error> {
        let mut params =
            batch.iter().flat_map(|(id, epoch)| [Param::int(*id), epoch_param(*epoch)]).collect::<Vec<_>>();
        params.extend(self.token(Verb::Heartbeat)?);
        let statement = self.texts.heartbeat(batch.len());
        let rows = self.connections.run(Verb::Heartbeat.name(), &statement, params, deadline).await?;
        rows.iter().map(|row| Ok((row.int("id")?, task::epoch(row, "epoch")?))).collect()
    }
}
