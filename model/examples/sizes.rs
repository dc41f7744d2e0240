use leaseproof_model::{free::LeaseModel, graph::*, properties, world::*};
use leaseproof_rules::*;
fn run(world: World) {
    world.validate().unwrap();
    let model = LeaseModel::new(world);
    let graph = explore(&model, Limits { max_states: 12_000_000 }).unwrap();
    let s = graph.stats();
    println!(
        "{:60} states {:9} edges {:10} depth {} cut {} {:.2}s {} MB",
        model.world.name,
        s.states,
        s.edges,
        s.depth,
        s.cut,
        s.seconds,
        s.memory_bytes >> 20
    );
    for r in graph.check_properties().unwrap() {
        if !r.outcome.holds() {
            println!("   {} {:?}", r.name, r.outcome.counterexample().map(|c| c.len()));
            if let Some(Counterexample::Run(t)) = r.outcome.counterexample() {
                for st in &t.steps {
                    println!("      {:?}\n          {:?}", st.action, st.state);
                }
            }
        }
    }
    let setup = &model.world.setup;
    let t = std::time::Instant::now();
    let goal = |p: &leaseproof_model::packed::Packed| {
        let s = p.unpack();
        properties::all_resolved(setup, &s)
    };
    let r = graph.check_leads_to("eventually_resolved", Trigger::Anywhere, goal).unwrap();
    println!("   live holds {} {:.2}s", r.outcome.holds(), t.elapsed().as_secs_f64());
    if let Some(Counterexample::Lasso(l)) = r.outcome.counterexample() {
        for st in l.stem.steps.iter().chain(&l.cycle) {
            println!("      {:?}\n          {:?}", st.action, st.state);
        }
        println!("cycle {}", l.cycle.len());
    }
}
fn main() {
    let none = Instruments::default();
    let key = Instruments { idempotency_key: true, ..none };
    let query = Instruments { status_query: true, ..none };
    let qt = Instruments { execution_token: true, ..query };
    let which: Vec<usize> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let calm = |w: World| w;
    let all = vec![
        World::lease(1, 2).unwrap().errors().reruns(1),
        World::lease(1, 2).unwrap(),
        World::lease(1, 3).unwrap(),
        World::lease(1, 3).unwrap().errors(),
        World::lease(1, 3).unwrap().errors().hangs(),
        World::lease(1, 2).unwrap().errors().hangs().reruns(1),
        World::lease(1, 3).unwrap().errors().reruns(1),
        World::lease(2, 2).unwrap(),
        World::lease(2, 2).unwrap().errors(),
        World::lease(1, 2).unwrap().effect(none, OnUnknown::Escalate).errors(),
        World::lease(1, 2).unwrap().effect(none, OnUnknown::Escalate).errors().reruns(1),
        World::lease(1, 3).unwrap().effect(none, OnUnknown::Escalate).errors(),
        World::lease(1, 2).unwrap().effect(key, OnUnknown::Escalate).errors(),
        World::lease(1, 2).unwrap().effect(query, OnUnknown::Escalate).errors(),
        World::lease(1, 2).unwrap().effect(qt, OnUnknown::Escalate).errors(),
        World::lease(1, 3).unwrap().effect(qt, OnUnknown::Escalate),
        World::lease(1, 2).unwrap().effect(none, OnUnknown::Skip).errors(),
        World::lease(1, 2).unwrap().effect(none, OnUnknown::Repeat).errors(),
        World::lease(2, 2).unwrap().effect(none, OnUnknown::Escalate),
    ];
    for (i, w) in all.into_iter().enumerate() {
        if which.is_empty() || which.contains(&i) {
            run(calm(w));
        }
    }
}
