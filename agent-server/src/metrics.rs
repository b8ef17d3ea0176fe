//! Figures for who watches over processes, in the text format of Prometheus.

use std::sync::atomic::AtomicI64;

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// The figures.
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
        registry.register("runs_started", "Runs that began or went on", metrics.started.clone());
        registry.register("runs_ended", "Runs that ended or stopped, by how", metrics.ended.clone());
        registry.register("tokens", "Tokens that finished runs used, with those below them", metrics.tokens.clone());
        registry.register("http_requests", "Requests that were answered", metrics.requests.clone());
        registry.register("runs_under_way", "Runs under way", metrics.runs.clone());
        registry.register("streams_open", "Streams of events that somebody reads", metrics.streams.clone());
        metrics
    }
}

impl Metrics {
    /// A run began, or went on.
    pub(crate) fn started(&self, agent: &str) {
        self.started.get_or_create(&OfAgent { agent: agent.into() }).inc();
        self.runs.inc();
    }

    /// A run ended, or stopped for now.
    pub(crate) fn ended(&self, agent: &str, status: &'static str, tokens: u64) {
        self.ended.get_or_create(&Ended { agent: agent.into(), status }).inc();
        self.tokens.get_or_create(&OfAgent { agent: agent.into() }).inc_by(tokens);
        self.runs.dec();
    }

    /// A request of a route was answered.
    pub(crate) fn answered(&self, route: &str, status: u16) {
        self.requests.get_or_create(&Answered { route: route.into(), status }).inc();
    }

    /// All figures.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // A text takes everything.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
