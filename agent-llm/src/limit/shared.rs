//! The part of a limit that other processes share.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use agent_core::{
    Caps, Result,
    budget::{Amounts, Ledger},
};
use tokio::{
    sync::Mutex,
    time::{Instant, sleep},
};

const MINUTE: u64 = 60_000;

/// What all processes together may send in a minute, as accounts of a ledger, one for each minute.
pub(super) struct Shared {
    ledger: Arc<dyn Ledger>,
    /// What the accounts' names begin with.
    prefix: String,
    caps: Caps,
    /// What the clock said when it began to run, in milliseconds; it is tokio's from there on.
    began: (u64, Instant),
    /// Held by the one request of this process that asks: others wait behind it, in their order, and each process has one that asks, however
    /// many wait there.
    turn: Mutex<()>,
}

/// A request that is set aside. When it is dropped it counts: as it was estimated, unless it is known better.
pub(super) struct Share {
    shared: Arc<Shared>,
    account: String,
    receipt: u64,
    used: Amounts,
}

impl Shared {
    pub(super) fn new(ledger: Arc<dyn Ledger>, limiter: &str, caps: Caps) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let began = (u64::try_from(now.as_millis()).unwrap_or(u64::MAX), Instant::now());
        Self { ledger, prefix: format!("rate limit/{limiter}/"), caps, began, turn: Mutex::default() }
    }

    /// Waits until a request of about `tokens` fits beside those of all processes.
    ///
    /// # Errors
    /// Those of the ledger.
    pub(super) async fn take(self: &Arc<Self>, tokens: u64) -> Result<Share> {
        // One that is larger than the limit has a minute for itself.
        let tokens = self.caps.tokens.map_or(0, |most| tokens.min(most));
        let used = Amounts::none().model_calls(1).tokens(tokens);
        let _turn = self.turn.lock().await;
        loop {
            let now = self.began.0 + u64::try_from(self.began.1.elapsed().as_millis()).unwrap_or(0);
            let account = format!("{}{:020}", self.prefix, now / MINUTE);
            if let Some(receipt) = self.ledger.reserve(&account, &self.caps, used).await? {
                self.ledger.forget(&self.prefix, &account);
                return Ok(Share { shared: self.clone(), account, receipt, used });
            }
            tokio::select! {
                () = self.ledger.changed(&account) => {}
                () = sleep(Duration::from_millis(MINUTE - now % MINUTE)) => {}
            }
        }
    }
}

impl Share {
    /// The request used `tokens`, if that is known.
    pub(super) fn answered(mut self, tokens: Option<u64>) {
        self.used = tokens.map_or(self.used, |tokens| self.used.tokens(tokens));
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // It is handed over here, whether anybody waits or not.
        drop(self.shared.ledger.settle(&self.account, self.receipt, self.used));
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("prefix", &self.prefix).field("caps", &self.caps).finish_non_exhaustive()
    }
}
