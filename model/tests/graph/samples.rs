//! Three small models of different make: a struct state, a heap state with a boundary, a packed integer.

use leaseproof_model::graph::Fair;
use stateright::{Model, Property};

/// Two processes that enter a critical section by Peterson's algorithm.
pub struct Peterson;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mutex {
    pub at: [u8; 2],
    pub wants: [bool; 2],
    pub turn: usize,
}

impl Model for Peterson {
    type State = Mutex;
    type Action = usize;

    fn init_states(&self) -> Vec<Mutex> {
        let at = |turn| Mutex { at: [0; 2], wants: [false; 2], turn };
        vec![at(0), at(1)]
    }

    fn actions(&self, _: &Mutex, actions: &mut Vec<usize>) {
        actions.extend([0, 1]);
    }

    fn next_state(&self, state: &Mutex, me: usize) -> Option<Mutex> {
        let mut next = state.clone();
        let other = 1 - me;
        next.at[me] = match state.at[me] {
            0 => {
                next.wants[me] = true;
                1
            }
            1 => {
                next.turn = other;
                2
            }
            2 if state.wants[other] && state.turn == other => return None,
            2 => 3,
            _ => {
                next.wants[me] = false;
                0
            }
        };
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("at most one is inside", |_, state: &Mutex| state.at != [3, 3])]
    }
}

impl Fair for Peterson {
    fn fair_class(&self, _: &Mutex, &me: &usize) -> Option<u8> {
        Some(me as u8)
    }
}

/// A mailbox: letters are sent in any order, delivered in any order, duplicated, dropped. Unbounded but for the boundary.
pub struct Mail;

#[derive(Clone, Debug, PartialEq)]
pub enum Post {
    Send(u8),
    Deliver(usize),
    Copy(usize),
    Drop(usize),
}

impl Model for Mail {
    /// Letters under way (sorted) and letters delivered.
    type State = (Vec<u8>, Vec<u8>);
    type Action = Post;

    fn init_states(&self) -> Vec<Self::State> {
        vec![(vec![], vec![])]
    }

    fn actions(&self, (under_way, _): &Self::State, actions: &mut Vec<Post>) {
        actions.extend((0..2).map(Post::Send));
        for place in 0..under_way.len() {
            actions.extend([Post::Deliver(place), Post::Copy(place), Post::Drop(place)]);
        }
    }

    fn next_state(&self, (under_way, delivered): &Self::State, action: Post) -> Option<Self::State> {
        let (mut under_way, mut delivered) = (under_way.clone(), delivered.clone());
        match action {
            Post::Send(letter) => under_way.push(letter),
            Post::Deliver(place) => {
                let letter = under_way.remove(place);
                // A letter that arrived before changes nothing but the mail.
                if delivered.last() != Some(&letter) {
                    delivered.push(letter);
                }
            }
            Post::Copy(place) => under_way.push(under_way[place]),
            Post::Drop(place) => {
                under_way.remove(place);
            }
        }
        under_way.sort_unstable();
        Some((under_way, delivered))
    }

    fn within_boundary(&self, (under_way, delivered): &Self::State) -> bool {
        under_way.len() <= 3 && delivered.len() <= 3
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("short", |_, (_, delivered): &Self::State| delivered.len() <= 3)]
    }
}

impl Fair for Mail {
    fn fair_class(&self, _: &Self::State, action: &Post) -> Option<u8> {
        matches!(action, Post::Deliver(_)).then_some(0)
    }
}

/// Four dials of seven hours in one integer; the last one sticks at its last hour.
pub struct Dials;

impl Model for Dials {
    type State = u64;
    type Action = u32;

    fn init_states(&self) -> Vec<u64> {
        vec![0, 3]
    }

    fn actions(&self, _: &u64, actions: &mut Vec<u32>) {
        actions.extend(0..4);
    }

    fn next_state(&self, &state: &u64, dial: u32) -> Option<u64> {
        let hour = state >> (dial * 8) & 0xFF;
        let turned = if dial == 3 { (hour + 1).min(6) } else { (hour + 1) % 7 };
        Some(state - (hour << (dial * 8)) + (turned << (dial * 8)))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("no eight", |_, &state| state & 8 == 0)]
    }
}

impl Fair for Dials {
    fn fair_class(&self, _: &u64, &dial: &u32) -> Option<u8> {
        Some(dial as u8)
    }
}
