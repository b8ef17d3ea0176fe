//! The agent: two tools, one of which a person approves.

use agent::{
    Model, Resource,
    middleware::{Approval, Limits},
    prelude::*,
};

use crate::orders::Orders;

const PROMPT: &str = "\
You help the customers of a teapot shop. Look an order up before you speak of it. If an order came broken or late and \
the customer wants the money back, refund it: a colleague approves each refund. Be brief and kind.";

/// Looks up an order.
#[tool(effect = "pure")]
async fn look_up_order(
    orders: Resource<Orders>,
    /// The order's number, such as `A-17`.
    number: String,
) -> Result<String> {
    orders.describe(&number)
}

/// Refunds an order. A colleague approves the refund first.
#[tool(effect = "idempotent")]
async fn refund(
    orders: Resource<Orders>,
    /// The order's number, such as `A-17`.
    number: String,
    /// The customer's reason, for the colleague.
    reason: String,
) -> Result<String> {
    orders.refund(&number, &reason)
}

/// Builds the agent.
pub(crate) fn build(model: impl Model, orders: Orders) -> Result<Agent> {
    Agent::builder("support", model)
        .system(PROMPT)
        .tool(look_up_order)
        .tool(refund)
        .resource(orders)
        .middleware(Limits::new().model_calls(12))
        .middleware(Approval::new().ask("refund").allow("*"))
        .build()
}
