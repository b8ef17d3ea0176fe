//! Sub-agents are offered to the model.

use super::{list, position, text};
use crate::config::{
    registry::Registry,
    text::{Node, Tree},
};

const DELEGATION: &str = "delegation";

pub(super) fn settle(registry: &Registry, written: &mut Node, live: &mut Node) {
    written.take("offer_sub_agents");
    let wanted = !matches!(live.take("offer_sub_agents").map(|node| node.tree), Some(Tree::Bool(false)));
    let Some(place) =
        live.get("sub_agents").filter(|agents| !agents.entries().is_empty()).map(|node| node.place.clone())
    else {
        return;
    };
    if wanted && registry.middlewares.contains_key(DELEGATION) && position(live, "middleware", DELEGATION).is_none() {
        for agent in [written, live] {
            list(agent, "middleware", &place).push(text(&place, DELEGATION));
        }
    }
}
