//! Every fault at every protocol point, one a story.

use crate::compare_all;
use crate::made::{ACTS, BASICS, HALVES, fault, text};

/// Seeds of a story: they move a fault by milliseconds, not to another point.
const SEEDS: u64 = 2;

#[test]
fn with_any_fault_at_any_point_the_code_does_what_the_model_says() {
    let mut all = Vec::new();
    for basic in &BASICS {
        for op in basic.ops {
            for half in HALVES {
                for (i, act) in ACTS.iter().enumerate() {
                    let name = format!("{}-{op}-{half}-{i}", basic.name);
                    all.push((name, text(basic, &fault(basic.node, op, half, act))));
                }
            }
        }
    }
    assert_eq!(all.len(), 13 * 2 * 12);
    compare_all(&all, SEEDS);
}
