//! The shop's orders. In an application, this is a client of your order system.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agent::prelude::*;

/// Orders by number. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Orders(Arc<Mutex<BTreeMap<&'static str, Order>>>);

#[derive(Debug)]
struct Order {
    item: &'static str,
    state: &'static str,
    price_cents: u32,
    is_refunded: bool,
}

impl Orders {
    /// Creates three orders.
    pub(crate) fn sample() -> Self {
        let order = |item, state, price_cents| Order { item, state, price_cents, is_refunded: false };
        let orders = [
            ("A-17", order("a teapot", "delivered on Monday", 3900)),
            ("A-18", order("four cups", "on its way", 5000)),
            ("B-02", order("a kettle", "delivered last week", 7800)),
        ];
        Self(Arc::new(Mutex::new(orders.into())))
    }

    /// Describes an order.
    pub(crate) fn describe(&self, number: &str) -> Result<String> {
        let orders = self.lock();
        let Order { item, state, price_cents, is_refunded } = orders.get(number).ok_or_else(|| unknown(number))?;
        let refunded = if *is_refunded { ", refunded" } else { "" };
        Ok(format!("{number}: {item}, {state}, {}.{:02} francs{refunded}", price_cents / 100, price_cents % 100))
    }

    /// Refunds an order; a second refund changes nothing.
    pub(crate) fn refund(&self, number: &str, reason: &str) -> Result<String> {
        let mut orders = self.lock();
        let order = orders.get_mut(number).ok_or_else(|| unknown(number))?;
        order.is_refunded = true;
        Ok(format!(
            "{number} is refunded: {}.{:02} francs ({reason})",
            order.price_cents / 100,
            order.price_cents % 100
        ))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Order>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The model reads the message and asks the customer.
fn unknown(number: &str) -> Error {
    Error::tool(format!("there is no order '{number}': ask the customer for the number, such as A-17"))
}
