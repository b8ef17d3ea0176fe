//! Metrics in the text format of Prometheus.

use std::sync::atomic::{AtomicI64, AtomicU64};

use agent::{Result, RunEnd};
use prometheus_client::{
    encoding::{
        EncodeLabelSet,
        text::{encode_eof, encode_registry},
    },
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

use crate::spending::{Allowance, Spent};

/// Metrics of the server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    started: Family<OfAgent, Counter>,
    ended: Family<Ended, Counter>,
    tokens: Family<OfAgent, Counter>,
    requests: Family<Answered, Counter>,
    pub(crate) runs: Gauge<i64, AtomicI64>,
    pub(crate) streams: Gauge<i64, AtomicI64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfAgent {
    agent: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    agent: String,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    route: String,
    status: u16,
}

/// Labels of an account: a key by its name, or all keys of a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Account {
    tenant: String,
    key: Option<String>,
    per: &'static str,
}

type Dollars = Family<Account, Gauge<f64, AtomicU64>>;

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("agent"),
            started: Family::default(),
            ended: Family::default(),
            tokens: Family::default(),
            requests: Family::default(),
            runs: Gauge::default(),
            streams: Gauge::default(),
        };
        let registry = &mut metrics.registry;
        registry.register("runs_started", "Runs that began or resumed", metrics.started.clone());
        registry.register("runs_ended", "Runs that ended or were suspended, by status", metrics.ended.clone());
        registry.register("tokens", "Tokens used by ended runs, including their sub-agents", metrics.tokens.clone());
        registry.register("http_requests", "Answered HTTP requests", metrics.requests.clone());
        registry.register("runs_under_way", "Runs under way", metrics.runs.clone());
        registry.register("streams_open", "Open event streams", metrics.streams.clone());
        metrics
    }
}

impl Metrics {
    /// Counts a run that began or resumed.
    pub(crate) fn started(&self, agent: &str) {
        self.started.get_or_create(&OfAgent { agent: agent.into() }).inc();
        self.runs.inc();
    }

    /// Counts a run that ended or was suspended.
    fn ended(&self, agent: &str, status: &'static str, tokens: u64) {
        self.ended.get_or_create(&Ended { agent: agent.into(), status }).inc();
        self.tokens.get_or_create(&OfAgent { agent: agent.into() }).inc_by(tokens);
        self.runs.dec();
    }

    /// Counts a run that ended or was suspended, by its end; none if the process dropped it.
    pub(crate) fn ended_with(&self, agent: &str, end: Option<&Result<RunEnd>>) {
        let (status, tokens) = match end {
            Some(Ok(RunEnd::Finished(finished))) => ("finished", finished.tree_usage.total()),
            Some(Ok(end)) => (end.as_str(), 0),
            Some(Err(_)) => ("failed", 0),
            None => ("dropped", 0),
        };
        self.ended(agent, status, tokens);
    }

    /// Counts a response of a route.
    pub(crate) fn answered(&self, route: &str, status: u16) {
        self.requests.get_or_create(&Answered { route: route.into(), status }).inc();
    }

    /// Encodes all metrics, with the current balances of these accounts.
    pub(crate) fn text(&self, balances: &[(Allowance, Spent)]) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode_registry(&mut text, &self.registry);
        let _ = encode_registry(&mut text, &money(balances));
        let _ = encode_eof(&mut text);
        text
    }
}

fn money(balances: &[(Allowance, Spent)]) -> Registry {
    let (spent, left) = (Dollars::default(), Dollars::default());
    for (allowance, balance) in balances {
        let (tenant, key) = allowance.owner();
        let account = Account { tenant, key, per: allowance.per.as_str() };
        spent.get_or_create(&account).set(balance.dollars());
        left.get_or_create(&account).set(balance.dollars_left());
    }
    let mut registry = Registry::with_prefix("agent");
    let (spent_help, left_help) = (
        "Spending of keys and tenants in the current day or month (UTC)",
        "Remaining amount of the limit, without the amount reserved for active calls",
    );
    registry.register_with_unit("spent", spent_help, Unit::Other("dollars".into()), spent);
    registry.register_with_unit("unspent", left_help, Unit::Other("dollars".into()), left);
    registry
}
