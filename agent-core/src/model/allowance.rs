//! A model call's reservation: an upper bound of what it may use, and an answer that is no longer than what is left.

use std::sync::{Arc, PoisonError, atomic::Ordering};

use super::ModelRequest;
use crate::{
    amounts::Amounts,
    budget::{Account, Balance, Budget, Refused, Reservation, used_up},
    cx::EngineCx,
    error::{Error, ErrorKind, Result},
    future::boxed,
    journal::EntryBody,
    llm::{ModelInfo, ModelResponse},
    usage::Usage,
};

impl EngineCx<'_> {
    /// Sets aside what a model call of this run may use, as [`Budget::reserve_model_call`] does, and notes in the journal that
    /// the call begins. When the reservation is [settled](Budget::settle_model_call) or dropped, the journal has that too.
    ///
    /// # Errors
    /// As [`Budget::reserve_model_call`].
    ///
    /// ```
    /// use agent_core::{Model, ModelRequest, ModelResponse, Result, engine::RunDriver};
    ///
    /// async fn call(run: &RunDriver, model: &dyn Model) -> Result<ModelResponse> {
    ///     let mut request = ModelRequest::new(run.cx().clone());
    ///     let (info, reserved) = (request.model.clone(), run.engine().reserve_model_call(&mut request).await?);
    ///     let answered = model.call(request).await;
    ///     run.cx().budget().settle_model_call(reserved, info.as_deref(), &answered).await?;
    ///     answered
    /// }
    /// ```
    pub async fn reserve_model_call(self, req: &mut ModelRequest) -> Result<Option<Reservation>> {
        if self.0.budget().is_unlimited() {
            return Ok(None);
        }
        // In a box: calls without a budget, which are most, have no room for it.
        let reserved = boxed(|| self.0.budget().reserve_model_call(req)).await?;
        Ok(reserved.map(|mut reserved| {
            let call = self.0.0.reserved.fetch_add(1, Ordering::Relaxed);
            let log = self.log().clone();
            log.record(EntryBody::BudgetReserved { call, amounts: reserved.amounts() });
            log.flush();
            reserved.begin();
            reserved.when_settled(move |amounts| log.record(EntryBody::BudgetSettled { call, amounts }));
            reserved
        }))
    }
}

impl Budget {
    /// Sets aside what a model call may use at most: the tokens of its prompt as the budget's counter counts them, the
    /// longest answer that it may get, and what both cost. Nothing is needed (`None`) where nothing is limited.
    ///
    /// If less is left, `max_tokens` is lowered to it: the call wants at least one token of an answer. If enough would be
    /// left but for calls under way, it waits for them.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] with the context key `budget` if that is not left; [`ErrorKind::Config`] if money has a cap and
    /// the model has no price; [`ErrorKind::Store`] if a ledger failed.
    pub async fn reserve_model_call(&self, req: &mut ModelRequest) -> Result<Option<Reservation>> {
        if self.is_unlimited() {
            return Ok(None);
        }
        let call = self.planned(req)?;
        let (mut answer, mut watched) = (call.answer, None);
        loop {
            let wanted = self.amounts(&call, answer)?;
            match self.try_reserve(wanted).await {
                Ok(reservation) => {
                    req.reserved = true;
                    if answer < call.answer || (call.tell && call.counts_tokens()) {
                        Arc::make_mut(&mut req.params).max_tokens = Some(answer);
                    }
                    return Ok(Some(reservation));
                }
                Err(Refused::Failed(e)) => return Err(e),
                Err(Refused::By(index)) => {
                    let account = &self.0.accounts[index];
                    let Balance { settled, reserved } = account.balance().await?;
                    let waits = account.caps.refusal(settled, wanted).is_none() && reserved != Amounts::none();
                    watched = match watched.take() {
                        // Those under way may give something back. It was watched before this attempt: nothing was missed.
                        Some((known, change)) if known == index && waits => {
                            change.await;
                            None
                        }
                        _ => Some((index, account.changed())),
                    };
                    answer = call.answer;
                    for account in self.0.accounts.iter() {
                        let Balance { settled, .. } = account.balance().await?;
                        answer = self.fitting(&call, account, settled, answer)?;
                    }
                }
            }
        }
    }

    /// What a model call as it stands may use at most.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if money has a cap and the model has no price.
    pub fn estimate(&self, req: &ModelRequest) -> Result<Amounts> {
        let call = self.planned(req)?;
        self.amounts(&call, call.answer)
    }

    /// What a call of `model` used, in the budget's terms.
    pub fn used_by(&self, model: Option<&ModelInfo>, response: &ModelResponse) -> Amounts {
        let cost = self.0.terms.cost(name(model), response.model.as_deref(), &response.usage);
        self.used(&response.usage, cost.unwrap_or(0))
    }

    fn used(&self, usage: &Usage, cost: u64) -> Amounts {
        Amounts::none().model_calls(1).tokens(usage.total()).cost(cost)
    }

    /// What a model call used that failed with `error`: nothing if the provider refused to make it; `None` if it is not
    /// known.
    pub fn used_by_failed(&self, error: &Error) -> Option<Amounts> {
        let refused = matches!(
            error.kind(),
            ErrorKind::RateLimited
                | ErrorKind::Overloaded
                | ErrorKind::Authentication
                | ErrorKind::Quota
                | ErrorKind::InvalidRequest
                | ErrorKind::ContextOverflow
                | ErrorKind::Config
        );
        refused.then(|| Amounts::none().model_calls(1))
    }

    /// Settles what was reserved for a call of `model`, if anything was: with what the answer says, nothing for a call that the
    /// provider refused to make, and all of it if nobody knows.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if a ledger failed.
    pub async fn settle_model_call(
        &self,
        reserved: Option<Reservation>,
        model: Option<&ModelInfo>,
        answered: &Result<ModelResponse>,
    ) -> Result<()> {
        let Some(reserved) = reserved else { return Ok(()) };
        let used = match answered {
            Ok(response) => Some(self.used_by(model, response)),
            Err(e) => self.used_by_failed(e),
        };
        match used {
            Some(used) => reserved.settle(used).await,
            None => Ok(()), // dropped: all of it was used
        }
    }

    /// What is known of the call before it is made.
    fn planned(&self, req: &ModelRequest) -> Result<Call> {
        let caps = || self.0.accounts.iter().map(|account| &account.caps);
        let (tokens, cost) = (caps().any(|caps| caps.tokens.is_some()), caps().any(|caps| caps.cost.is_some()));
        let (answer, tell) =
            self.0.terms.answer(req.params.max_tokens, req.model.as_ref().and_then(|model| model.max_output));
        let prompt = if tokens || cost { self.prompt(req) } else { 0 };
        Ok(Call { model: req.model.clone(), prompt, answer: answer.max(1), tell, tokens, cost })
    }

    fn prompt(&self, req: &ModelRequest) -> u64 {
        match &self.0.terms.counter {
            Some(counter) => req.tokens(counter),
            None => self.0.count.lock().unwrap_or_else(PoisonError::into_inner).prompt(
                req.system.as_ref(),
                &req.tools,
                &req.messages,
            ),
        }
    }

    fn amounts(&self, call: &Call, answer: u64) -> Result<Amounts> {
        let mut amounts = Amounts::none().model_calls(1);
        if call.counts_tokens() {
            amounts.tokens = call.prompt.saturating_add(answer);
        }
        if call.cost {
            amounts.cost = self.0.terms.most(name(call.model.as_deref()), call.prompt, answer)?;
        }
        Ok(amounts)
    }

    /// The longest answer, up to `most`, with which the call fits in the account beside what is `settled`.
    fn fitting(&self, call: &Call, account: &Account, settled: Amounts, most: u64) -> Result<u64> {
        let fits = |answer| self.amounts(call, answer).map(|wanted| account.caps.refusal(settled, wanted).is_none());
        if fits(most)? {
            return Ok(most);
        }
        if !fits(1)? {
            return Err(used_up(&account.caps, settled, self.amounts(call, 1)?));
        }
        let (mut fitting, mut over) = (1, most);
        while over - fitting > 1 {
            let middle = fitting + (over - fitting) / 2;
            if fits(middle)? { fitting = middle } else { over = middle }
        }
        Ok(fitting)
    }
}

/// A call before it is made.
struct Call {
    model: Option<Arc<ModelInfo>>,
    prompt: u64,
    /// The longest answer that is wanted.
    answer: u64,
    /// True if nobody holds the model to it yet.
    tell: bool,
    tokens: bool,
    cost: bool,
}

impl Call {
    fn counts_tokens(&self) -> bool {
        self.tokens || self.cost
    }
}

fn name(model: Option<&ModelInfo>) -> &str {
    model.map_or("", |model| &model.name)
}
