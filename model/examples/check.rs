use leaseproof_model::check::*;
use leaseproof_rules::Guard;
fn main() {
    let t = std::time::Instant::now();
    let show = |rows: Vec<CheckRow>| {
        for r in rows {
            println!(
                "{:?} {:45} {:10} {:?} states {} len {} {:.3}s in {:?}",
                r.without,
                r.property,
                r.kind.name(),
                r.holds,
                r.states,
                r.trace_len,
                r.seconds,
                r.shown_in
            );
            if r.without.is_some() && r.holds == Holds::Violated && std::env::args().len() > 1 {
                for l in r.trace {
                    println!("      {l}");
                }
            }
        }
    };
    show(check(Selection::default()).unwrap());
    println!("{:.2}s", t.elapsed().as_secs_f64());
    for g in Guard::ALL {
        show(check_ablation(g).unwrap());
    }
    println!("{:.2}s", t.elapsed().as_secs_f64());
}
