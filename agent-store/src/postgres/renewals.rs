//! Renewal of leases.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use agent_core::Result;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout},
};

use super::{
    connect::{Db, Location},
    error::{lost_connection, store_error},
};
use crate::{leases::Leases, writing::Writing};

/// Request for an immediate renewal of all leases, to verify that this one is still held.
pub(super) type Asked = (i64, oneshot::Sender<Result<bool>>);

/// Maximum number of requests that one renewal answers.
const AT_ONCE: usize = 256;

/// Renews the leases of a journal, over a connection of its own: a slow transaction of the writer,
/// or one that waits for the locks of a migration, costs no lease.
pub(super) struct Renewer {
    location: Location,
    /// None until the first renewal, and after the connection failed.
    db: Option<Db>,
    asked: mpsc::UnboundedReceiver<Asked>,
    leases: Leases,
    writing: Writing,
}

impl Renewer {
    pub(super) fn new(
        location: Location,
        asked: mpsc::UnboundedReceiver<Asked>,
        leases: Leases,
        writing: Writing,
    ) -> Self {
        Self { location, db: None, asked, leases, writing }
    }

    pub(super) async fn run(mut self) {
        let heartbeat = self.writing.heartbeat();
        let mut next = Instant::now() + heartbeat;
        loop {
            let mut asked = Vec::new();
            let waiting = self.asked.recv_many(&mut asked, AT_ONCE);
            if timeout(next.saturating_duration_since(Instant::now()), waiting).await == Ok(0) {
                return;
            }
            let began = Instant::now();
            let wanted: Vec<_> = asked.iter().map(|(epoch, _)| *epoch).collect();
            let held = self.renew(&wanted, heartbeat).await;
            // A failure is repeated soon.
            next = began + if held.is_some() { heartbeat } else { heartbeat / 4 };
            for (epoch, reply) in asked {
                let is_held = held.as_ref().map(|held| held.contains(&epoch));
                let _ = reply.send(is_held.ok_or_else(lost_connection)); // the caller may be gone
            }
        }
    }

    /// Renews all leases and returns those that were renewed, or `None` if unknown. Waits for the
    /// locks of the `wanted` ones only.
    async fn renew(&mut self, wanted: &[i64], within: Duration) -> Option<BTreeSet<i64>> {
        let (leases, seconds) = (self.leases.all(), self.writing.lease_ttl.as_secs_f64());
        if leases.is_empty() {
            return Some(BTreeSet::new());
        }
        let asked = self.leases.now();
        let renewing = async {
            let db = match self.db.take().filter(|db| !db.client.is_closed()) {
                Some(db) => db,
                None => self.location.connect().await?,
            };
            let rows = db.statements.renew.rows(&db.client, &[&leases, &seconds]).await.map_err(|e| store_error(&e))?;
            let mut found: BTreeMap<i64, bool> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
            let locked: Vec<_> = wanted.iter().copied().filter(|epoch| found.get(epoch) == Some(&false)).collect();
            if !locked.is_empty() {
                let renewing = db.statements.renew_locked.rows(&db.client, &[&locked, &seconds]).await;
                let rows = renewing.map_err(|e| store_error(&e))?;
                found.retain(|epoch, _| !locked.contains(epoch));
                found.extend(rows.iter().map(|row| (row.get::<_, i64>(0), row.get::<_, bool>(1))));
            }
            self.db = Some(db); // a connection that failed, or did not answer in time, is closed
            Ok(found)
        };
        match timeout(within, renewing).await.unwrap_or_else(|_| Err(lost_connection())) {
            Ok(found) => {
                for epoch in leases {
                    match found.get(&epoch) {
                        Some(true) => self.leases.renewed(epoch, asked, true),
                        // Its append is in progress: the next renewal tries again.
                        Some(false) => {}
                        None => self.leases.renewed(epoch, asked, false),
                    }
                }
                Some(found.into_iter().filter(|(_, renewed)| *renewed).map(|(epoch, _)| epoch).collect())
            }
            // No lease is lost yet, and no append can go wrong: every append checks its lease.
            Err(e) => {
                tracing::warn!(error = %e, "the leases could not be renewed; trying again");
                None
            }
        }
    }
}
