//! The file as it is written, version 1: what serde reads, before the checks of [`crate::Story`].

use serde::Deserialize;
use toml::Spanned;

use crate::duration::Millis;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub version: Spanned<u32>,
    pub title: String,
    pub question: String,
    #[serde(default)]
    pub requirements: Vec<Spanned<String>>,
    #[serde(default)]
    pub sources: Vec<String>,
    pub without: Option<Spanned<String>>,
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
    pub lease: Millis,
    pub heartbeat: Millis,
    pub fence_margin: Option<Millis>,
    pub max_attempts: Option<u32>,
    pub max_interruptions: Option<u32>,
    pub retry_delay: Option<Millis>,
    pub retry_factor: Option<u32>,
    pub retry_max: Option<Millis>,
    pub expected_run: Option<Millis>,
    pub on_exhausted: Option<Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueueTable {
    pub poll: Option<Spanned<Millis>>,
    pub sweep: Option<Spanned<Millis>>,
    pub deadline: Option<Spanned<Millis>>,
    pub horizon: Option<Spanned<Millis>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskTable {
    pub name: Spanned<String>,
    pub work: Spanned<Millis>,
    #[serde(default)]
    pub ends: Vec<Spanned<String>>,
    #[serde(default)]
    pub effects: Vec<Spanned<EffectTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EffectTable {
    pub key: Spanned<String>,
    pub after: Spanned<Millis>,
    #[serde(default)]
    pub instruments: Vec<Spanned<String>>,
    pub on_unknown: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecutorTable {
    pub name: Spanned<String>,
    pub slots: Option<Spanned<u32>>,
    pub start: Option<Millis>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FaultTable {
    pub at: Option<Spanned<String>>,
    pub nth: Option<Spanned<u32>>,
    pub after: Option<Spanned<Millis>>,
    pub on: Spanned<String>,
    #[serde(rename = "do")]
    pub act: Spanned<String>,
    pub times: Option<Spanned<u32>>,
    #[serde(rename = "for")]
    pub duration: Option<Spanned<Millis>>,
    pub peer: Option<Spanned<String>>,
    pub way: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionTable {
    pub task: Spanned<String>,
    #[serde(rename = "do")]
    pub act: Spanned<String>,
    pub after: Millis,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectTable {
    pub verdicts: Spanned<Vec<Spanned<String>>>,
    pub recovers_within: Option<Millis>,
    pub effects_max: Option<u32>,
    pub effects_min: Option<u32>,
    pub late_results_min: Option<u32>,
    pub runs_max: Option<u32>,
}
