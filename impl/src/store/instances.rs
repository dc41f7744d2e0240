//! The table of processes: who may own tasks, and who is known to be gone (A2).

use super::{Param, Row, Store};
use crate::{Error, tags};

/// A process as it introduces itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registration {
    /// Random per start, or set by hand. Never address and pid: a container has pid 1 at every start, and addresses are
    /// given out again.
    pub boot_id: String,
    /// The name of the place this process fills, e.g. `worker-3` of a stateful set. A later start under the same name
    /// supersedes this one. `None`: nobody takes over.
    pub slot_name: Option<String>,
    /// For people to read.
    pub host: String,
    /// For people to read.
    pub pid: u32,
    /// Random per registration, so that a repeated one is told from a second process with the same boot id.
    pub nonce: String,
}

/// A process as stored.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Instance {
    /// See [`Registration::boot_id`].
    pub boot_id: String,
    /// See [`Registration::slot_name`].
    pub slot_name: Option<String>,
    /// Where it runs, or ran.
    pub host: String,
    /// Its process id there.
    pub pid: i64,
    /// When it registered, in ms on the database's clock.
    pub started_at_ms: i64,
    /// See [`Registration::nonce`].
    pub nonce: String,
    /// The boot id that took over its slot.
    pub superseded_by: Option<String>,
}

impl Instance {
    fn read(row: &Row) -> Result<Instance, Error> {
        Ok(Instance {
            boot_id: row.text("boot_id")?,
            slot_name: row.opt_text("slot_name")?,
            host: row.text("host")?,
            pid: row.int("pid")?,
            started_at_ms: row.int("started_at_ms")?,
            nonce: row.text("nonce")?,
            superseded_by: row.opt_text("superseded_by")?,
        })
    }
}

impl Store {
    /// Enters a process, then marks all starts of its slot but the latest as superseded; returns their boot ids. Safe to
    /// repeat after an unknown outcome.
    ///
    /// # Errors
    /// [`Error::DuplicateBootId`] if another registration has the boot id, [`Error::Superseded`] if a later start of the
    /// slot came in between; else the database's.
    pub async fn register(&self, process: &Registration) -> Result<Vec<String>, Error> {
        let params = vec![
            Param::text(&process.boot_id),
            Param::Text(process.slot_name.clone()),
            Param::text(&process.host),
            Param::int(i64::from(process.pid)),
            Param::text(&process.nonce),
        ];
        if self.run(tags::REGISTER, &self.texts.register, params).await?.is_empty()
            && let Some(there) = self.instance(&process.boot_id).await?
        {
            if there.nonce != process.nonce {
                return Err(Error::DuplicateBootId { boot_id: there.boot_id, host: there.host, pid: there.pid });
            }
            if let Some(by) = there.superseded_by {
                return Err(Error::Superseded { boot_id: there.boot_id, by });
            }
        }
        if process.slot_name.is_none() {
            return Ok(Vec::new());
        }
        let rows = self.run(tags::SUPERSEDE, &self.texts.supersede, vec![Param::text(&process.boot_id)]).await?;
        let mut superseded = Vec::with_capacity(rows.len());
        for row in &rows {
            superseded.push(row.text("boot_id")?);
            if superseded.last() == Some(&process.boot_id) {
                return Err(Error::Superseded { boot_id: process.boot_id.clone(), by: row.text("superseded_by")? });
            }
        }
        superseded.sort_unstable();
        Ok(superseded)
    }

    /// One process.
    ///
    /// # Errors
    /// The database's.
    pub async fn instance(&self, boot_id: &str) -> Result<Option<Instance>, Error> {
        let rows = self.run(tags::INSTANCE, &self.texts.instance, vec![Param::text(boot_id)]).await?;
        rows.first().map(Instance::read).transpose()
    }
}
