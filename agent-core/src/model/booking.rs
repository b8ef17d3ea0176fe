//! [`Booking`]: one model call on a run's account.

use std::sync::{Arc, atomic::Ordering};

use super::ModelRequest;
use crate::{
    amounts::Amounts,
    budget::Reservation,
    cx::{EngineCx, RunCx},
    error::Result,
    future::boxed,
    journal::EntryBody,
    llm::{ModelInfo, ModelResponse},
};

/// One model call on the account of a run: what it may use is set aside, and journalled, before it begins; what it used is
/// booked when it is [settled](Self::settle). Dropped unsettled, all of it counts as used: nobody knows what a call used that
/// was cut off.
///
/// ```
/// use agent_core::{Model, ModelRequest, ModelResponse, Result, engine::RunDriver};
///
/// async fn call(run: &RunDriver, model: &dyn Model) -> Result<ModelResponse> {
///     let mut request = ModelRequest::new(run.cx().clone());
///     let booking = run.engine().book_model_call(&mut request).await?;
///     let answered = model.call(request).await;
///     booking.settle(&answered).await?;
///     answered
/// }
/// ```
#[derive(Debug)]
#[must_use = "a call that is not settled counts as if it had used everything"]
pub struct Booking(Option<Box<Booked>>);

/// What is set aside, and for what.
#[derive(Debug)]
struct Booked {
    cx: RunCx,
    model: Option<Arc<ModelInfo>>,
    reserved: Reservation,
    call: u32,
}

impl EngineCx<'_> {
    /// Sets aside what a model call of this run may use; a request that may use more than is left is told to write less.
    /// Waits while other calls hold what it needs.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) if a budget does not allow the call.
    pub async fn book_model_call(self, request: &mut ModelRequest) -> Result<Booking> {
        self.0.book_model_call(request).await
    }
}

impl RunCx {
    pub(crate) async fn book_model_call(&self, request: &mut ModelRequest) -> Result<Booking> {
        if self.budget().is_unlimited() {
            return Ok(Booking(None));
        }
        // In a box: calls without a budget, which are most, have no room for it.
        let Some(mut reserved) = boxed(|| self.budget().reserve_model_call(request)).await? else {
            return Ok(Booking(None));
        };
        reserved.begin();
        let call = self.0.booked.fetch_add(1, Ordering::Relaxed);
        self.log().record(EntryBody::BudgetReserved { call, amounts: reserved.amounts() });
        self.log().flush();
        Ok(Booking(Some(Box::new(Booked { cx: self.clone(), model: request.model.clone(), reserved, call }))))
    }
}

impl Booking {
    /// Books what the call used: what the answer says, nothing for a call that the provider refused to make, and all that was
    /// set aside if nobody knows.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if a ledger failed.
    pub async fn settle(mut self, answered: &Result<ModelResponse>) -> Result<()> {
        let Some(Booked { cx, model, .. }) = self.0.as_deref() else { return Ok(()) };
        let used = match answered {
            Ok(response) => Some(cx.budget().used_by(model.as_deref(), response)),
            Err(e) => cx.budget().used_by_failed(e),
        };
        match used.and_then(|used| Some((self.0.take()?, used))) {
            Some((booked, used)) => {
                booked.record(used);
                booked.reserved.settle(used).await
            }
            None => Ok(()),
        }
    }
}

impl Booked {
    fn record(&self, used: Amounts) {
        self.cx.log().record(EntryBody::BudgetSettled { call: self.call, amounts: used });
    }
}

impl Drop for Booking {
    fn drop(&mut self) {
        if let Some(booked) = self.0.take() {
            booked.record(booked.reserved.amounts());
        }
    }
}
