//! Goal: exports stay as other programs read them. Method: a snapshot each of a small trace made by hand, and what must hold
//! of the exports of real runs.

use std::collections::BTreeMap;

use leaseproof_scenarios::{Story, stories};
use leaseproof_sim::export::{perfetto, shiviz};
use leaseproof_sim::run::{Run, run_story};
use leaseproof_sim::trace::{Header, Line, Reader};
use serde_json::Value;

/// A worker pauses behind its call; its task goes to a second worker. The second call is lost.
const SMALL: &str = r#"{"leaseproof_trace":2,"scenario":"small","seed":1,"nodes":["w1","w2","sweeper","database","third_party","person"],"tasks":["t1"]}
{"t_ns":0,"node":"database","event":"start"}
{"t_ns":0,"node":"person","event":"enqueue","task":"t1"}
{"t_ns":1000000,"node":"w1","event":"start"}
{"t_ns":2000000,"node":"w1","event":"claim","task":"t1","from":"PENDING","to":"RUNNING","row_epoch":1,"now_ms":2,"lease_until_ms":30002,"attempts":0,"interruptions":0}
{"t_ns":3000000,"node":"w1","event":"run_begin","task":"t1","epoch":1,"count":1}
{"t_ns":5000000,"node":"w1","event":"intent","task":"t1","epoch":1,"from":"RUNNING","to":"RUNNING","row_epoch":1,"now_ms":5,"entry":"INTENT"}
{"t_ns":6000000,"node":"w1","event":"call","task":"t1","epoch":1}
{"t_ns":8000000,"node":"third_party","event":"effect","task":"t1","epoch":1,"count":1}
{"t_ns":9000000,"node":"w1","event":"pause","for_ms":60000}
{"t_ns":35000000000,"node":"sweeper","event":"requeue","task":"t1","epoch":1,"from":"RUNNING","to":"PENDING","row_epoch":2,"now_ms":35000,"due_ms":35000,"attempts":0,"interruptions":1}
{"t_ns":36000000000,"node":"w2","event":"claim","task":"t1","from":"PENDING","to":"RUNNING","row_epoch":3,"now_ms":36000,"lease_until_ms":66000,"attempts":0,"interruptions":1}
{"t_ns":37000000000,"node":"w2","event":"call","task":"t1","epoch":3}
{"t_ns":37000000000,"node":"w2","event":"lose","point":"call.request"}
{"t_ns":60009000000,"node":"w1","event":"resume"}
{"t_ns":60010000000,"node":"w1","event":"refuse","task":"t1","epoch":1,"from":"RUNNING","row_epoch":3,"now_ms":60010,"verb":"outcome"}
{"t_ns":61000000000,"node":"w2","event":"crash"}
"#;

fn small() -> (Header, Vec<Line>) {
    let mut reader = Reader::new(SMALL.as_bytes()).unwrap();
    let mut lines = Vec::new();
    while let Some(line) = reader.next_line().unwrap() {
        lines.push(line);
    }
    (reader.header().clone(), lines)
}

fn real() -> Vec<(Story, Run)> {
    stories().unwrap().into_iter().map(|story| (story.clone(), run_story(&story, 2).unwrap())).collect()
}

#[test]
fn perfetto_gets_spans_flows_and_counters() {
    let (header, lines) = small();
    insta::assert_snapshot!(perfetto(&header, &lines));
}

#[test]
fn shiviz_gets_vector_clocks() {
    let (header, lines) = small();
    insta::assert_snapshot!(shiviz(&header, &lines));
}

/// What begins ends, in the same process, and a flow that ends has begun; time does not go back.
#[test]
fn every_span_of_a_run_that_begins_ends() {
    for (story, run) in real() {
        let whole: Value = serde_json::from_str(&perfetto(&run.header, &run.lines)).unwrap();
        let events = whole["traceEvents"].as_array().unwrap();
        let mut open: BTreeMap<(String, String), i64> = BTreeMap::new();
        let mut flows: BTreeMap<String, i64> = BTreeMap::new();
        let mut last = 0.0;
        for event in events.iter().filter(|event| event["ph"] != "M") {
            let ts = event["ts"].as_f64().unwrap();
            assert!(ts >= last, "{}: {event}", story.name);
            last = ts;
            let id = || (event["id"].to_string(), event["pid"].to_string());
            match event["ph"].as_str().unwrap() {
                "b" => *open.entry(id()).or_default() += 1,
                "e" => *open.entry(id()).or_default() -= 1,
                "s" => *flows.entry(event["id"].to_string()).or_default() += 1,
                "f" => *flows.entry(event["id"].to_string()).or_default() -= 1,
                _ => {}
            }
            assert!(open.values().all(|count| (0..=1).contains(count)), "{}: {event}", story.name);
            assert!(flows.values().all(|count| (0..=1).contains(count)), "{}: {event}", story.name);
        }
        assert!(open.values().all(|count| *count == 0), "{}", story.name);
    }
}

/// A host's own entry counts its events; what a line knows of others they had come to before.
#[test]
fn vector_clocks_grow_and_know_nothing_that_has_not_happened() {
    for (story, run) in real() {
        let log = shiviz(&run.header, &run.lines);
        let mut own: BTreeMap<String, u64> = BTreeMap::new();
        for line in log.lines().skip(2) {
            let (host, rest) = line.split_once(' ').unwrap();
            let end = rest.find('}').unwrap();
            let clock: BTreeMap<String, u64> = serde_json::from_str(&rest[..=end]).unwrap();
            *own.entry(host.to_owned()).or_default() += 1;
            for (other, time) in clock {
                assert!(time <= own.get(&other).copied().unwrap_or_default(), "{}: {line}", story.name);
                assert!(other != host || time == own[host], "{}: {line}", story.name);
            }
        }
    }
}
