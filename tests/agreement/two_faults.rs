//! Two faults a story, drawn by number: at points of any node, or by time.

use crate::compare_all;
use crate::made::{ACTS, BASICS, HALVES, fault, text};

/// Stories, and seeds of each: a bound on the time. More of them belong into a sweep.
const STORIES: u64 = 120;
const SEEDS: u64 = 2;

/// SplitMix64: the same stories everywhere and for ever.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % end as u64) as usize
    }

    fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    fn fault(&mut self) -> String {
        if self.below(4) == 0 {
            let on = self.of(&["w1", "w2", "sweeper", "database", "third_party"]);
            let act = self.of(&ACTS[1..6]);
            // Not on a full second, where the steps of a story fall.
            return format!("[[faults]]\nafter = \"{}500ms\"\non = \"{on}\"\n{act}\n", 8 + self.below(40));
        }
        let op = self.of(&[
            "claim",
            "heartbeat",
            "intent",
            "call",
            "outcome",
            "retry",
            "complete",
            "query",
            "give_up",
            "sweep",
            "requeue",
            "escalate",
        ]);
        let node = match op {
            "sweep" | "requeue" | "escalate" => "sweeper",
            _ => self.of(&["w1", "w1", "w2"]),
        };
        let (half, act) = (self.of(&HALVES), self.of(&ACTS));
        fault(node, op, half, act)
    }
}

#[test]
fn with_two_faults_the_code_does_what_the_model_says() {
    let made = (0..STORIES).map(|number| {
        let mut draw = Draw(number);
        let basic = &BASICS[draw.below(BASICS.len())];
        let faults = draw.fault() + &draw.fault();
        (format!("two-{number}"), text(basic, &faults))
    });
    compare_all(&made.collect::<Vec<_>>(), SEEDS);
}
