//! Strongly connected components, without recursion: a run of a model can be millions of states long.
//!
//! Tarjan's algorithm in Pearce's form (D. J. Pearce, "A space-efficient algorithm for finding strongly connected
//! components", Inf. Process. Lett. 116, 2016): one number per vertex serves as index, low link and component label.

use super::store::{Edges, StateId};

/// The label of a vertex that is not in the part. Above every index, so an edge to it never lowers a link.
const OUTSIDE: u32 = u32::MAX;

/// The strongly connected components of a part of the graph.
pub(super) struct Components {
    /// Equal for two vertices iff they are in the same component; [`OUTSIDE`] for those not in the part.
    labels: Vec<u32>,
    members: Vec<StateId>,
    /// Where each component of two or more begins in `members`; the end follows last.
    starts: Vec<usize>,
}

impl Components {
    /// The components with a cycle. Self-loops are no edges here, so these are the ones with two states or more.
    pub(super) fn cyclic(&self) -> impl Iterator<Item = &[StateId]> {
        self.starts.windows(2).map(|range| &self.members[range[0]..range[1]])
    }

    /// Are both in the part, and in the same component?
    #[inline]
    pub(super) fn together(&self, a: StateId, b: StateId) -> bool {
        self.labels[a as usize] == self.labels[b as usize] && self.labels[a as usize] != OUTSIDE
    }
}

/// A vertex being visited.
struct Frame {
    vertex: StateId,
    /// The edge to look at next.
    position: u32,
    end: u32,
    /// No edge seen so far leads to an older vertex that is still open.
    is_root: bool,
}

/// Finds the components of the vertices `0..count` that are `inside`.
pub(super) fn components(count: usize, edges: &Edges, inside: impl Fn(StateId) -> bool) -> Components {
    // While a vertex is open its label is the smallest index it is known to reach; once its component is complete, the
    // component's label. Indices count up from 1 and labels down from the top; they never meet, because an index is
    // given back when its vertex is labelled.
    let mut labels: Vec<u32> = (0..count as StateId).map(|id| if inside(id) { 0 } else { OUTSIDE }).collect();
    let mut next_index = 1_u32;
    let mut next_label = OUTSIDE - 1;
    let mut members = Vec::new();
    let mut starts = vec![0];
    let mut open: Vec<StateId> = Vec::new();
    let mut calls: Vec<Frame> = Vec::new();
    let frame = |vertex| {
        let row = edges.row(vertex);
        Frame { vertex, position: row.start as u32, end: row.end as u32, is_root: true }
    };

    for root in 0..count as StateId {
        if labels[root as usize] != 0 {
            continue;
        }
        labels[root as usize] = next_index;
        next_index += 1;
        calls.push(frame(root));
        while let Some(top) = calls.last_mut() {
            let vertex = top.vertex;
            if top.position < top.end {
                let target = edges.target(top.position as usize);
                let label = labels[target as usize];
                if label == 0 {
                    // The edge is looked at again after the visit, and then carries the low link back.
                    labels[target as usize] = next_index;
                    next_index += 1;
                    calls.push(frame(target));
                    continue;
                }
                // A complete component has a label above every index, so it never lowers the link.
                if label < labels[vertex as usize] {
                    labels[vertex as usize] = label;
                    top.is_root = false;
                }
                top.position += 1;
                continue;
            }
            let is_root = top.is_root;
            calls.pop();
            if !is_root {
                open.push(vertex);
                continue;
            }
            let begin = members.len();
            while let Some(&other) = open.last()
                && labels[other as usize] >= labels[vertex as usize]
            {
                open.pop();
                labels[other as usize] = next_label;
                members.push(other);
                next_index -= 1;
            }
            labels[vertex as usize] = next_label;
            members.push(vertex);
            next_index -= 1;
            next_label -= 1;
            if members.len() - begin >= 2 {
                starts.push(members.len());
            } else {
                members.truncate(begin);
            }
        }
    }
    Components { labels, members, starts }
}

#[cfg(test)]
mod tests {
    use super::{Components, components};
    use crate::graph::store::Edges;
    use petgraph::graph::{DiGraph, NodeIndex};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn edges_from(count: usize, pairs: &BTreeSet<(u32, u32)>) -> Edges {
        let mut edges = Edges::new();
        for from in 0..count as u32 {
            for &(_, to) in pairs.range((from, 0)..=(from, u32::MAX)) {
                edges.push(to, None);
            }
            assert!(edges.end_row());
        }
        edges
    }

    fn cyclic_sets(found: &Components) -> BTreeSet<BTreeSet<u32>> {
        found.cyclic().map(|members| members.iter().copied().collect()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        /// Against petgraph's Tarjan, on the part of a random graph that a random filter leaves.
        #[test]
        fn agrees_with_petgraph(
            count in 1_usize..24,
            pairs in proptest::collection::btree_set((0_u32..24, 0_u32..24), 0..70),
            outside in proptest::collection::btree_set(0_u32..24, 0..8),
        ) {
            let pairs: BTreeSet<(u32, u32)> = pairs
                .into_iter()
                .map(|(a, b)| (a % count as u32, b % count as u32))
                .filter(|(a, b)| a != b)
                .collect();
            let inside = |id: u32| !outside.contains(&id);
            let found = components(count, &edges_from(count, &pairs), inside);

            let mut reference = DiGraph::<(), ()>::new();
            let nodes: Vec<NodeIndex> = (0..count).map(|_| reference.add_node(())).collect();
            for &(a, b) in &pairs {
                if inside(a) && inside(b) {
                    reference.add_edge(nodes[a as usize], nodes[b as usize], ());
                }
            }
            let expected: Vec<BTreeSet<u32>> = petgraph::algo::tarjan_scc(&reference)
                .into_iter()
                .map(|members| members.into_iter().map(|node| node.index() as u32).collect())
                .collect();
            let cyclic: BTreeSet<BTreeSet<u32>> =
                expected.iter().filter(|members| members.len() > 1).cloned().collect();
            prop_assert_eq!(cyclic_sets(&found), cyclic);
            for a in 0..count as u32 {
                for b in 0..count as u32 {
                    let same = inside(a)
                        && inside(b)
                        && expected.iter().any(|members| members.contains(&a) && members.contains(&b));
                    prop_assert_eq!(found.together(a, b), same, "{} and {}", a, b);
                }
            }
        }
    }

    /// A recursive version would overflow the stack here.
    #[test]
    fn a_million_states_in_one_line_need_no_stack() {
        let count = 1_000_000_u32;
        let line: BTreeSet<(u32, u32)> = (1..count).map(|to| (to - 1, to)).collect();
        let found = components(count as usize, &edges_from(count as usize, &line), |_| true);
        assert_eq!(found.cyclic().count(), 0);

        let mut ring = line;
        ring.insert((count - 1, 0));
        let found = components(count as usize, &edges_from(count as usize, &ring), |_| true);
        assert_eq!(found.cyclic().map(<[u32]>::len).collect::<Vec<_>>(), [count as usize]);
    }
}
