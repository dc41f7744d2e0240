//! A search with several threads and one result.
//!
//! Taking steps costs more than numbering states, and does not depend on order. So other threads take the steps of
//! batches of states; this thread takes the batches in, in order, and expands one itself whenever the one that comes
//! next is not there yet. Numbers, parents and edges are those of a search with one thread, whatever the timing.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::Fair;
use super::batch::{BATCH, Batch};
use super::explore::{ExploreError, Search};

/// Batches that a thread has before it: one under work, one to go on with.
const AHEAD: usize = 2;

/// A batch on its way to a thread and back, with a copy of its states.
struct Job<M: Fair> {
    number: usize,
    worker: usize,
    states: Vec<M::State>,
    batch: Batch<M>,
}

/// Tells the main thread of a panic here, which would else wait for the lost batch as long as other threads live.
struct Alarm<'a, M: Fair>(&'a Sender<Option<Job<M>>>);

impl<M: Fair> Drop for Alarm<'_, M> {
    fn drop(&mut self) {
        if thread::panicking() {
            // Nobody listens any more if the main thread is panicking too.
            let _ = self.0.send(None);
        }
    }
}

fn work<M: Fair>(model: &M, jobs: &Receiver<Job<M>>, done: &Sender<Option<Job<M>>>) {
    let alarm = Alarm(done);
    for mut job in jobs {
        job.batch.expand(model, &job.states);
        if alarm.0.send(Some(job)).is_err() {
            return;
        }
    }
}

/// The batches between the first state not taken in and the first not given to anyone, in order.
struct Line<M: Fair> {
    /// `None`: with a thread.
    batches: VecDeque<Option<Job<M>>>,
    /// The number of the first.
    first: usize,
    /// The first state that is in none of them.
    next_state: usize,
    spare: Vec<Job<M>>,
}

impl<M: Fair> Line<M> {
    /// The next batch of states, if a whole one is there; or, at the end of the line, whatever is.
    fn cut_off(&mut self, states: &[M::State]) -> Option<Job<M>> {
        let there = states.len() - self.next_state;
        if there == 0 || (there < BATCH && !self.batches.is_empty()) {
            return None;
        }
        let end = self.next_state + there.min(BATCH);
        let empty = || Job { number: 0, worker: 0, states: Vec::new(), batch: Batch::default() };
        let mut job = self.spare.pop().unwrap_or_else(empty);
        job.number = self.first + self.batches.len();
        job.states.clear();
        job.states.extend_from_slice(&states[self.next_state..end]);
        self.next_state = end;
        self.batches.push_back(None);
        Some(job)
    }

    /// Puts a batch that is expanded in its place. `None` is a thread's alarm.
    fn put_back(&mut self, job: Option<Job<M>>) -> usize {
        let job = job.expect("the model panicked in another thread");
        let worker = job.worker;
        let place = job.number - self.first;
        self.batches[place] = Some(job);
        worker
    }
}

/// Runs a search to its end.
pub(super) fn run<M>(search: &mut Search<'_, M>, threads: NonZeroUsize) -> Result<(), ExploreError>
where
    M: Fair<State: Send, Action: Send> + Sync,
{
    let model = search.model;
    thread::scope(|scope| {
        let (to_main, from_workers) = channel();
        let mut workers = Vec::new();
        for _ in 1..threads.get() {
            let (to_worker, jobs) = channel();
            let done = to_main.clone();
            scope.spawn(move || work(model, &jobs, &done));
            workers.push((to_worker, 0_usize));
        }
        drop(to_main);
        let mut line = Line { batches: VecDeque::new(), first: 0, next_state: search.expanded(), spare: Vec::new() };
        while !search.is_cut() && search.expanded() < search.states().len() {
            for (worker, (to_worker, load)) in workers.iter_mut().enumerate() {
                while *load < AHEAD
                    && search.states().len() - line.next_state >= 2 * BATCH
                    && let Some(mut job) = line.cut_off(search.states())
                {
                    job.worker = worker;
                    *load += 1;
                    to_worker.send(job).expect("a worker lives as long as its channel");
                }
            }
            for job in from_workers.try_iter() {
                workers[line.put_back(job)].1 -= 1;
            }
            if let Some(Some(_)) = line.batches.front()
                && let Some(Some(mut job)) = line.batches.pop_front()
            {
                line.first += 1;
                search.take_in(&mut job.batch)?;
                line.spare.push(job);
            } else if line.batches.len() < AHEAD * threads.get() * 2
                && let Some(mut job) = line.cut_off(search.states())
            {
                job.batch.expand(model, &job.states);
                line.put_back(Some(job));
            } else {
                let job = from_workers.recv().expect("the batch that comes next is with a worker");
                workers[line.put_back(job)].1 -= 1;
            }
        }
        // Dropping the channels ends the workers.
        drop(workers);
        Ok(())
    })
}
