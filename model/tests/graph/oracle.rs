//! Naive answers, sharing no code and no idea with the checker: closures by repetition, every subset of states, every
//! walk up to a length. Only for tables of a few states.

use crate::table::{Table, When};

/// Steps of a shortest path to each state from an initial one; `None` if unreachable.
pub fn distances(table: &Table) -> Vec<Option<usize>> {
    let mut distances = vec![None; table.rows.len()];
    for &state in &table.initial {
        distances[usize::from(state)] = Some(0);
    }
    // Bellman-Ford: as many rounds as there are states.
    for _ in 0..table.rows.len() {
        for (from, row) in table.rows.iter().enumerate() {
            let Some(distance) = distances[from] else {
                continue;
            };
            for &(to, _) in row {
                let known = &mut distances[usize::from(to)];
                *known = Some(known.map_or(distance + 1, |old: usize| old.min(distance + 1)));
            }
        }
    }
    distances
}

fn is_enabled(table: &Table, state: usize, class: u8) -> bool {
    table.rows[state].iter().any(|&(to, of)| of == Some(class) && usize::from(to) != state)
}

/// The states that some run visits while the promise is open.
fn open_states(table: &Table, when: When) -> Vec<bool> {
    let distances = distances(table);
    let mut open: Vec<bool> = (0..table.rows.len())
        .map(|state| {
            let owed = match when {
                When::Start => table.initial.contains(&(state as u8)),
                When::Anywhere => true,
                When::Marked => table.triggers(state as u8),
            };
            distances[state].is_some() && owed && !table.is_goal(state as u8)
        })
        .collect();
    for _ in 0..table.rows.len() {
        for (from, row) in table.rows.iter().enumerate() {
            for &(to, _) in row {
                if open[from] && !table.is_goal(to) {
                    open[usize::from(to)] = true;
                }
            }
        }
    }
    open
}

/// Can a fair run stay open for ever? Tries every set of states as the set that is visited infinitely often.
pub fn has_fair_open_run(table: &Table, when: When) -> bool {
    let count = table.rows.len();
    let open = open_states(table, when);
    (1_u32..1 << count).any(|set| {
        let inside = |state: usize| set >> state & 1 == 1;
        let members: Vec<usize> = (0..count).filter(|&state| inside(state)).collect();
        members.iter().all(|&state| open[state])
            && is_connected(table, &members)
            && (0..64).all(|class| {
                members.iter().any(|&state| !is_enabled(table, state, class))
                    || members.iter().any(|&from| {
                        table.rows[from]
                            .iter()
                            .any(|&(to, of)| of == Some(class) && usize::from(to) != from && inside(usize::from(to)))
                    })
            })
    })
}

/// Warshall's closure inside the set.
fn is_connected(table: &Table, members: &[usize]) -> bool {
    let count = table.rows.len();
    let mut reach = vec![vec![false; count]; count];
    for &from in members {
        reach[from][from] = true;
        for &(to, _) in &table.rows[from] {
            if members.contains(&usize::from(to)) {
                reach[from][usize::from(to)] = true;
            }
        }
    }
    for &via in members {
        for &from in members {
            for &to in members {
                if reach[from][via] && reach[via][to] {
                    reach[from][to] = true;
                }
            }
        }
    }
    members.iter().all(|&from| members.iter().all(|&to| reach[from][to]))
}

/// Is there a fair lasso of exactly `length` steps? Tries every walk and every place where its cycle may begin.
pub fn has_lasso_of(table: &Table, when: When, length: usize) -> bool {
    let mut walk = Vec::new();
    table.initial.iter().any(|&start| extend(table, when, length, start, &mut walk))
}

/// `walk` holds the steps so far as (from, class, to).
fn extend(table: &Table, when: When, length: usize, at: u8, walk: &mut Vec<(u8, Option<u8>, u8)>) -> bool {
    if walk.len() == length {
        return (0..=length).any(|head| is_lasso(table, when, at, walk, head));
    }
    for &(to, class) in &table.rows[usize::from(at)] {
        walk.push((at, class, to));
        let found = extend(table, when, length, to, walk);
        walk.pop();
        if found {
            return true;
        }
    }
    false
}

fn is_lasso(table: &Table, when: When, end: u8, walk: &[(u8, Option<u8>, u8)], head: usize) -> bool {
    let mut visited: Vec<u8> = walk.iter().map(|&(from, _, _)| from).collect();
    visited.push(end);
    let cycle = &walk[head..];
    if visited[head] != end || cycle.iter().any(|&(from, _, to)| from == to) {
        return false;
    }
    let owed = (0..=head).any(|place| {
        let triggered = match when {
            When::Start => place == 0,
            When::Anywhere => true,
            When::Marked => table.triggers(visited[place]),
        };
        triggered && visited[place..].iter().all(|&state| !table.is_goal(state))
    });
    let fair = (0..64).all(|class| {
        cycle.iter().any(|&(_, of, _)| of == Some(class))
            || visited[head..].iter().any(|&state| !is_enabled(table, usize::from(state), class))
    });
    owed && fair
}
