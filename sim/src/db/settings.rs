//! The settings of a session that the node heeds; others are accepted and ignored.

use std::time::Duration;

use super::sql;

/// How long a session may wait. `None`: for ever, PostgreSQL's default for all three.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Settings {
    /// For a statement to end.
    pub statement_timeout: Option<Duration>,
    /// For a lock.
    pub lock_timeout: Option<Duration>,
    /// For the next statement of an open transaction.
    pub idle_in_transaction: Option<Duration>,
}

impl Settings {
    /// `SET name = value`. Gives whether the value could be read.
    pub fn set(&mut self, name: &str, value: &str) -> bool {
        let slot = match name {
            "statement_timeout" => &mut self.statement_timeout,
            "lock_timeout" => &mut self.lock_timeout,
            "idle_in_transaction_session_timeout" => &mut self.idle_in_transaction,
            _ => return true,
        };
        match sql::setting_ms(value) {
            Some(ms) => *slot = (ms > 0).then(|| Duration::from_millis(ms)),
            None => return false,
        }
        true
    }

    /// The `options` of a startup message: `-c name=value`, repeated.
    pub fn from_options(options: &str) -> Settings {
        let mut settings = Settings::default();
        for word in options.split_whitespace() {
            let word = word.strip_prefix("-c").or_else(|| word.strip_prefix("--")).unwrap_or(word);
            if let Some((name, value)) = word.split_once('=') {
                settings.set(name, value);
            }
        }
        settings
    }

    /// The shortest of the two waits for a lock, and the SQLSTATE and message of its end.
    pub fn wait(&self) -> Option<(Duration, &'static str, &'static str)> {
        let lock = self.lock_timeout.map(|t| (t, "55P03", "canceling statement due to lock timeout"));
        let statement = self.statement_timeout.map(|t| (t, "57014", "canceling statement due to statement timeout"));
        lock.into_iter().chain(statement).min_by_key(|(wait, ..)| *wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn startup_options_and_set_reach_the_same_settings() {
        let mut settings = Settings::from_options("-c statement_timeout=5000 -c lock_timeout=1s -c x=y");
        assert_eq!(settings.wait().map(|(wait, code, _)| (wait, code)), Some((Duration::from_secs(1), "55P03")));
        assert!(settings.set("lock_timeout", "0"));
        assert_eq!(settings.wait().map(|(wait, code, _)| (wait, code)), Some((Duration::from_secs(5), "57014")));
        assert!(!settings.set("statement_timeout", "soon"));
        assert!(settings.set("application_name", "x"));
    }
}
