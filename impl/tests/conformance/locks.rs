//! Row locks that somebody else holds, on the servers that have them.

use std::time::{Duration, Instant};

use crate::common::{Db, Session, claim_one, enqueue};

/// A session that holds the row lock of one task.
pub async fn locked(db: &Db, id: i64) -> Session {
    let mut session = db.session().await;
    session.execute(&format!("BEGIN; SELECT id FROM tasks WHERE id = {id} FOR UPDATE")).await;
    session
}

pub async fn a_claim_skips_a_row_that_another_session_has_locked(db: &Db) {
    let store = db.store().await;
    let (first, second) = (enqueue(&store).await, enqueue(&store).await);
    let mut other = locked(db, first).await;
    let began = Instant::now();
    let claimed: Vec<i64> = store.claim("worker", 10).await.unwrap().into_iter().map(|task| task.id).collect();
    assert_eq!(claimed, [second]);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    other.execute("ROLLBACK").await;
    assert_eq!(claim_one(&store, "worker").await.id, first);
}
