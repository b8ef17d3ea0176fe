//! The key `telemetry` is the middleware of that name, for all child runs, too.

use super::{entry, list, map, position};
use crate::config::{
    telemetry::OF_THE_MIDDLEWARE,
    text::{Node, Tree},
};

const TELEMETRY: &str = "telemetry";

/// The key itself stays: what it says of the exporter is the program's.
pub(super) fn settle(written: &mut Node, live: &mut Node) {
    if position(live, "middleware", TELEMETRY).is_some() {
        return;
    }
    for agent in [written, live] {
        let Some(said) = agent.get(TELEMETRY).cloned() else { continue };
        let place = said.place.clone();
        let keys = OF_THE_MIDDLEWARE.iter();
        let keys = keys.filter_map(|(here, there)| Some(entry(there, said.get(here)?.clone()))).collect();
        let for_all = entry("for_all", Node::new(place.clone(), Tree::Bool(true)));
        let part = map(&place, vec![entry(TELEMETRY, map(&place, keys)), for_all]);
        // Innermost, so that each attempt at a call has a span of its own.
        list(agent, "middleware", &place).push(part);
    }
}
