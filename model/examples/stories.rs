fn main() {
    let show = std::env::args().nth(1);
    for s in leaseproof_scenarios::stories().unwrap().into_iter().chain(leaseproof_scenarios::ablations().unwrap()) {
        if let Some(n) = &show {
            if &s.name != n {
                continue;
            }
        }
        let t = std::time::Instant::now();
        match leaseproof_model::story::run_story(&s) {
            Err(e) => println!("{}: {e}", s.name),
            Ok(o) => {
                let got: std::collections::BTreeSet<_> = o.verdicts.keys().copied().collect();
                let e = &s.expect;
                println!(
                    "{} {:32} {:8} states {:.2}s ({:.2}) cut {} rec {:?} (exp {:?}) eff {}..{} ({:?}..{:?}) late {}..{} ({:?}) runs {} ({:?}) {:?}",
                    if got == e.verdicts { "ok " } else { "BAD" },
                    s.name,
                    o.states,
                    o.seconds,
                    t.elapsed().as_secs_f64(),
                    o.cut,
                    o.recovered_within_ms,
                    e.recovers_within_ms,
                    o.effects_min,
                    o.effects_max,
                    e.effects_min,
                    e.effects_max,
                    o.late_results_min,
                    o.late_results_max,
                    e.late_results_min,
                    o.runs_max,
                    e.runs_max,
                    got.iter().map(|v| v.to_string()).collect::<Vec<_>>()
                );
                if show.is_some() {
                    for (v, t) in &o.verdicts {
                        println!("=== {v}\n{t}");
                    }
                }
            }
        }
    }
}
