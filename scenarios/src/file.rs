//! The file as it is written, version 1: what serde reads, before the checks of [`crate::Story`].

use serde::Deserialize;
use toml::Spanned;

use crate::limits::{Count, Length};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub version: Spanned<u32>,
    pub title: Spanned<String>,
    pub question: Spanned<String>,
    #[serde(default)]
    pub requirements: Vec<Spanned<String>>,
    #[serde(default)]
    pub sources: Vec<Spanned<String>>,
    pub without: Option<Spanned<String>>,
    pub seed: Option<Spanned<i64>>,
    pub policy: Spanned<PolicyTable>,
    #[serde(default)]
    pub queue: QueueTable,
    pub tasks: Spanned<Vec<TaskTable>>,
    pub executors: Spanned<Vec<ExecutorTable>>,
    #[serde(default)]
    pub faults: Vec<FaultTable>,
    #[serde(default)]
    pub decisions: Vec<DecisionTable>,
    pub expect: ExpectTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyTable {
    pub lease: Length,
    pub heartbeat: Length,
    pub fence_margin: Option<Length>,
    pub max_attempts: Option<Count>,
    pub max_interruptions: Option<Count>,
    pub retry_delay: Option<Length>,
    pub retry_factor: Option<Count>,
    pub retry_max: Option<Length>,
    pub expected_run: Option<Length>,
    pub on_exhausted: Option<Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueueTable {
    pub poll: Option<Spanned<Length>>,
    pub sweep: Option<Spanned<Length>>,
    pub deadline: Option<Spanned<Length>>,
    pub horizon: Option<Spanned<Length>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskTable {
    pub name: Spanned<String>,
    pub work: Spanned<Length>,
    #[serde(default)]
    pub ends: Vec<Spanned<String>>,
    #[serde(default)]
    pub effects: Vec<Spanned<EffectTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EffectTable {
    pub key: Spanned<String>,
    pub after: Spanned<Length>,
    #[serde(default)]
    pub instruments: Vec<Spanned<String>>,
    pub on_unknown: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecutorTable {
    pub name: Spanned<String>,
    pub slots: Option<Spanned<u32>>,
    pub start: Option<Spanned<Length>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FaultTable {
    pub at: Option<Spanned<String>>,
    pub nth: Option<Spanned<Count>>,
    pub after: Option<Spanned<Length>>,
    pub on: Spanned<String>,
    #[serde(rename = "do")]
    pub act: Spanned<String>,
    pub times: Option<Spanned<Count>>,
    #[serde(rename = "for")]
    pub duration: Option<Spanned<Length>>,
    pub peer: Option<Spanned<String>>,
    pub way: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionTable {
    pub task: Spanned<String>,
    #[serde(rename = "do")]
    pub act: Spanned<String>,
    pub after: Length,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectTable {
    pub verdicts: Spanned<Vec<Spanned<String>>>,
    pub recovers_within: Option<Length>,
    pub effects_max: Option<Count>,
    pub effects_min: Option<Count>,
    pub late_results_min: Option<Count>,
    pub runs_max: Option<Count>,
}
