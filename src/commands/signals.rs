//! The signals that stop a worker.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::failure::Failure;

/// What a signal asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// To stop; again, to stop at once.
    Stop,
    /// To stop; but to be told so twice is no hurry: a terminal that closes may say it twice, and `systemd` after a SIGTERM.
    HangUp,
}

/// The signals as they come.
pub struct Orders(mpsc::UnboundedReceiver<Order>);

impl Orders {
    /// Listens from now on. A SIGHUP that whoever started this process has it ignore (`nohup`) stays ignored.
    pub fn listen() -> Result<Orders, Failure> {
        let (tell, orders) = mpsc::unbounded_channel();
        let kinds = [
            (SignalKind::interrupt(), Order::Stop),
            (SignalKind::terminate(), Order::Stop),
            (SignalKind::quit(), Order::Stop),
            (SignalKind::hangup(), Order::HangUp),
        ];
        let ignored = ignored();
        for (kind, order) in kinds {
            if order == Order::HangUp && ignored & (1 << (kind.as_raw_value() - 1)) != 0 {
                continue;
            }
            let mut signal =
                signal(kind).map_err(|error| Failure::Internal(format!("signals can not be heard: {error}")))?;
            let tell = tell.clone();
            tokio::spawn(async move { while signal.recv().await.is_some() && tell.send(order).is_ok() {} });
        }
        Ok(Orders(orders))
    }

    /// Waits for the order to stop.
    pub async fn stop(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits for the order to stop at once.
    pub async fn at_once(&mut self) {
        loop {
            match self.0.recv().await {
                Some(Order::Stop) => return,
                Some(Order::HangUp) => {}
                None => std::future::pending().await,
            }
        }
    }
}

/// The signals that this process was started to ignore, one bit each; none where the system does not tell.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
