//! States and steps of the older designs in words.

use std::fmt;

use leaseproof_rules::{Property, Status};

use super::commit_running::{self, CommitRunning};
use super::handler::{Outside, Phase};
use super::single_transaction::{self, Orphan, Session, SingleTransaction, Whose};
use crate::describe::fate_text;
use crate::free::Fate;
use crate::properties::bit;

fn w(run: u8) -> String {
    format!("w{}", run + 1)
}

impl CommitRunning {
    /// A step in words.
    pub fn describe(&self, before: &commit_running::State, action: &commit_running::Action) -> String {
        use commit_running::Action;
        match *action {
            Action::Look { run } => format!("{}: reads PENDING", w(run)),
            Action::Claim { run, fate } => {
                let refused = self.compare_and_set && before.status != Status::Pending && fate == Fate::Fine;
                format!("{}: sets RUNNING{}{}", w(run), if refused { ", 0 rows" } else { "" }, fate_text(fate))
            }
            Action::Work { run, turn } => format!("{}: {}", w(run), turn.word()),
            Action::Report { run, fate } => {
                let to = if before.runs[usize::from(run)] == Phase::Succeeding { "SUCCESS" } else { "FAIL" };
                format!("{}: sets {to}{}", w(run), fate_text(fate))
            }
            Action::Crash { run } => format!("{}: crashes", w(run)),
            Action::Hang { run } => format!("{}: its handler hangs for ever", w(run)),
            Action::Reset => "reset: takes RUNNING for dead, sets PENDING".to_owned(),
            Action::StrayArrives => "third party: a call without sender is done".to_owned(),
            Action::StrayLost => "network: a call without sender is lost".to_owned(),
            Action::Calm => "world: no more faults".to_owned(),
        }
    }
}

impl fmt::Debug for commit_running::State {
    /// On one line, or with `{:#?}` one line each. Idle executors are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = vec![("task".to_owned(), self.status.name().to_owned())];
        for (number, phase) in (1..).zip(self.runs).filter(|(_, phase)| *phase != Phase::Idle) {
            let owner = if self.owner == Some(number - 1) { ", owner" } else { "" };
            lines.push((format!("w{number}"), format!("{}{owner}", phase.word())));
        }
        ghost_lines(&mut lines, self.outside, self.lost, self.calm, self.bad);
        write_lines(f, &lines)
    }
}

impl SingleTransaction {
    /// A step in words.
    pub fn describe(&self, before: &single_transaction::State, action: &single_transaction::Action) -> String {
        use single_transaction::Action;
        let whose = |whose| match whose {
            Whose::Run(run) => format!("{}'s session", w(run)),
            Whose::Orphan => "the session that nobody uses".to_owned(),
        };
        match *action {
            Action::Look { run } => format!("{}: reads PENDING", w(run)),
            Action::Claim { run, fate } => {
                let answer = match fate {
                    Fate::Fine if self.row_lock && before.is_locked() => ", meets the lock",
                    Fate::Fine if !self.is_free(before) => ", 0 rows",
                    _ => fate_text(fate),
                };
                format!("{}: locks the row and sets RUNNING{answer}", w(run))
            }
            Action::Work { run, turn } => format!("{}: {}", w(run), turn.word()),
            Action::Commit { run, fate } => {
                let (phase, session) = before.runs[usize::from(run)];
                let to = if phase == Phase::Succeeding { "SUCCESS" } else { "FAIL" };
                let answer = match (session, fate) {
                    (Session::Ended, Fate::Fine) if self.reconnects && before.is_locked() => {
                        " in a new session, meets the lock"
                    }
                    (Session::Ended, Fate::Fine) if self.reconnects => " in a new session, which goes through",
                    (Session::Ended, Fate::Fine) => ", refused: the server has ended the session",
                    _ => fate_text(fate),
                };
                format!("{}: commits {to}{answer}", w(run))
            }
            Action::Shrug { run } => format!("{}: gives up asking what became of its commit", w(run)),
            Action::Crash { run } => format!("{}: crashes, its connection is reset", w(run)),
            Action::HostFault { run } => format!("{}: its host dies in silence", w(run)),
            Action::Hang { run } => format!("{}: its handler hangs for ever", w(run)),
            Action::Cut { run } => format!("network: cut under {}", w(run)),
            Action::Keepalive { whose: of } => format!("server: keepalive ends {}, rolls back", whose(of)),
            Action::IdleTimeout { whose: of } => format!("server: idle timeout ends {}, rolls back", whose(of)),
            Action::StrayArrives => "third party: a call without sender is done".to_owned(),
            Action::StrayLost => "network: a call without sender is lost".to_owned(),
            Action::Calm => "world: no more faults".to_owned(),
        }
    }
}

impl fmt::Debug for single_transaction::State {
    /// On one line, or with `{:#?}` one line each. Idle executors are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let locked = if self.is_locked() { ", row locked" } else { "" };
        let mut lines = vec![("task".to_owned(), format!("{}{locked}", self.status))];
        for (number, (phase, session)) in (1..).zip(self.runs).filter(|(_, (phase, _))| *phase != Phase::Idle) {
            let session = match session {
                Session::None => "",
                Session::Open => ", RUNNING uncommitted",
                Session::Cut => ", RUNNING uncommitted, network cut",
                Session::Ended => ", its session ended by the server",
            };
            lines.push((format!("w{number}"), format!("{}{session}", phase.word())));
        }
        if let Some(orphan) = self.orphan {
            let who = match orphan {
                Orphan::Gone => "a session whose peer is gone",
                Orphan::Hung => "a session whose handler hangs",
            };
            lines.push(("server".to_owned(), format!("{who} holds the lock")));
        }
        ghost_lines(&mut lines, self.outside, self.lost, self.calm, self.bad);
        write_lines(f, &lines)
    }
}

type Line = (String, String);

fn ghost_lines(lines: &mut Vec<Line>, outside: Outside, lost: u8, calm: bool, bad: u16) {
    let mut add = |who: &str, what: String| lines.push((who.to_owned(), what));
    if outside.ledger > 0 {
        add("third party", format!("effect happened {}×", outside.ledger));
    }
    if outside.stray > 0 {
        add("network", format!("{} calls without sender under way", outside.stray));
    }
    if lost > 0 {
        add("runs lost", lost.to_string());
    }
    if calm {
        add("world", "no more faults".to_owned());
    }
    for property in Property::ALL.into_iter().filter(|property| bad & bit(*property) != 0) {
        add("violated", property.name().to_owned());
    }
}

fn write_lines(f: &mut fmt::Formatter<'_>, lines: &[Line]) -> fmt::Result {
    let between = if f.alternate() { "\n" } else { " · " };
    for (i, (who, what)) in lines.iter().enumerate() {
        let start = if i == 0 { "" } else { between };
        write!(f, "{start}{who}: {what}")?;
    }
    Ok(())
}
