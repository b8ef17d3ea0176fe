//! Limit shared between processes.

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

/// Limit of all processes together, as ledger accounts, one for each minute.
pub(super) struct Shared {
    ledger: Arc<dyn Ledger>,
    /// Prefix of the accounts' names.
    prefix: String,
    caps: Caps,
    /// Wall-clock time at start, in milliseconds, with the tokio instant that advances it.
    began: (u64, Instant),
    /// Held by the one request of this process that asks the ledger: the others wait behind it in
    /// order, so that each process has one request asking, however many wait in it.
    turn: Mutex<()>,
}

/// Reservation of one request. When dropped it settles with the actual usage if known, else with
/// the estimate.
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

    /// Waits until a request of about `tokens` fits the shared limit.
    ///
    /// # Errors
    /// The ledger's errors.
    pub(super) async fn take(self: &Arc<Self>, tokens: u64) -> Result<Share> {
        // A request larger than the limit gets a minute for itself.
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
    /// Sets the actual usage of the request, if known.
    pub(super) fn answered(mut self, tokens: Option<u64>) {
        self.used = tokens.map_or(self.used, |tokens| self.used.tokens(tokens));
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // `settle` enqueues the settlement synchronously; the returned future need not be awaited.
        drop(self.shared.ledger.settle(&self.account, self.receipt, self.used));
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("prefix", &self.prefix).field("caps", &self.caps).finish_non_exhaustive()
    }
}
