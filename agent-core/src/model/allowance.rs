//! Budget reservation of model calls: reserves an upper bound, and limits the answer to the
//! remaining budget.

use std::sync::{Arc, PoisonError, atomic::Ordering};

use super::ModelRequest;
use crate::{
    amounts::Amounts,
    budget::{Account, Balance, Budget, Refused, Reservation, UpperBound, used_up},
    cx::EngineCx,
    error::{Error, ErrorKind, Result},
    event::EventKind,
    future::boxed,
    journal::EntryBody,
    llm::{ModelInfo, ModelResponse},
    message::Message,
    usage::Usage,
};

impl EngineCx<'_> {
    /// Reserves the upper bound of a model call of this run, like [`Budget::reserve_model_call`],
    /// and records the start of the call in the journal. [Settling](Budget::settle_model_call) or
    /// dropping the reservation is recorded too.
    ///
    /// # Errors
    /// Those of [`Budget::reserve_model_call`].
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
        // Boxed, because most calls have no budget and should not pay for its size.
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

impl EngineCx<'_> {
    /// Completes the usage of an answer whose provider did not report it, so that it counts: the
    /// call itself and, if the reservation limits tokens, an estimate of them. Warns once per run.
    pub fn complete_usage(self, reserved: Option<&Reservation>, response: &mut ModelResponse) {
        let is_estimated = self.0.budget().complete_usage(reserved, response);
        if is_estimated && !self.0.0.warned_of_usage.swap(true, Ordering::Relaxed) {
            let message = "the model reports no usage: the budget counts an estimate of its tokens".into();
            self.0.emit(EventKind::Warning { message });
        }
    }
}

impl Budget {
    /// Reserves the upper bound of a model call: the tokens of its prompt according to the budget's
    /// counter, the longest answer that it may get, and the cost of both. Returns `None` if nothing
    /// is limited.
    ///
    /// If less is left, `max_tokens` is lowered accordingly: the call needs at least one answer
    /// token. If enough would be left without the reservations of running calls, the method waits
    /// for them, unless the request is itself part of a reserved call: then the answer is limited to
    /// what is left beside them.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] with the context key `budget` if not enough is left;
    /// [`ErrorKind::Config`] if there is a cost cap and the model has no price;
    /// [`ErrorKind::Store`] if a ledger failed.
    pub async fn reserve_model_call(&self, req: &mut ModelRequest) -> Result<Option<Reservation>> {
        if self.is_unlimited() {
            return Ok(None);
        }
        let call = self.planned(req)?;
        let (mut answer, mut watched) = (call.answer, None);
        loop {
            let wanted = self.amounts(&call, answer)?;
            match self.try_reserve(wanted).await {
                Ok(mut reservation) => {
                    reservation.prompt = call.prompt;
                    req.cx = req.cx.in_reserved_call();
                    if answer < call.answer || (call.tell && call.counts_tokens()) {
                        Arc::make_mut(&mut req.params).max_tokens = Some(answer);
                    }
                    return Ok(Some(reservation));
                }
                Err(Refused::Failed(e)) => return Err(e),
                Err(Refused::By(index)) => {
                    let account = &self.0.accounts[index];
                    let Balance { settled, reserved } = account.balance().await?;
                    let may_fit = account.caps.refusal(settled, wanted).is_none() && reserved != Amounts::none();
                    // The end of a call that waits for this one would never come.
                    let waits = may_fit && !req.is_reserved();
                    watched = match watched.take() {
                        // Running calls may release something. The account was watched before this
                        // attempt, so no change was missed.
                        Some((known, change)) if known == index && waits => {
                            change.await;
                            None
                        }
                        _ => Some((index, account.changed())),
                    };
                    answer = call.answer;
                    for account in self.0.accounts.iter() {
                        let Balance { settled, reserved } = account.balance().await?;
                        let used = if req.is_reserved() { settled.plus(reserved) } else { settled };
                        answer = self.fitting(&call, account, used, answer)?;
                    }
                }
            }
        }
    }

    /// Returns the upper bound of a model call.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if there is a cost cap and the model has no price.
    pub fn estimate(&self, req: &ModelRequest) -> Result<Amounts> {
        let call = self.planned(req)?;
        self.amounts(&call, call.answer)
    }

    /// Returns the amounts that a call of `model` used.
    pub fn used_by(&self, model: Option<&ModelInfo>, response: &ModelResponse) -> Amounts {
        let cost = self.0.terms.cost(name(model), response.model.as_deref(), &response.usage);
        self.used(&response.usage, cost.unwrap_or(0))
    }

    fn used(&self, usage: &Usage, cost: u64) -> Amounts {
        Amounts::none().model_calls(1).tokens(usage.total()).cost(cost)
    }

    /// Returns the amounts used by a model call that failed with `error`: only the call itself if
    /// the provider rejected it; `None` if the usage is unknown.
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

    /// Settles the reservation of a call of `model`, if there is one: with the usage of the answer,
    /// with only the call itself if the provider rejected it, and in full if the usage is unknown.
    /// The use counts as soon as this method is called. The future completes once the ledger has it,
    /// so that an answer can be recorded before that.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if a ledger failed.
    pub fn settle_model_call(
        &self,
        reserved: Option<Reservation>,
        model: Option<&ModelInfo>,
        answered: &Result<ModelResponse>,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let used = match answered {
            Ok(response) => Some(self.used_by(model, response)),
            Err(e) => self.used_by_failed(e),
        };
        // A reservation that is dropped is settled in full.
        let settling = reserved.zip(used).map(|(reserved, used)| boxed(|| reserved.settle(used)));
        async {
            match settling {
                Some(settling) => settling.await,
                None => Ok(()),
            }
        }
    }

    /// Completes the usage of an answer whose provider did not report it: the call itself and, if the
    /// reservation limits tokens, an estimate of the prompt and the answer by the budget's counter.
    /// Returns true if tokens were estimated. An answer from a cache used nothing.
    pub(crate) fn complete_usage(&self, reserved: Option<&Reservation>, response: &mut ModelResponse) -> bool {
        if response.cached {
            return false;
        }
        let prompt = reserved.map_or(0, |reserved| reserved.prompt);
        let is_unknown = response.usage.total() == 0 && prompt > 0;
        if is_unknown {
            let answer = Message::Assistant(response.message.clone());
            let answer = match &self.0.terms.counter {
                Some(counter) => counter.message(&answer),
                None => UpperBound::message(&answer),
            };
            (response.usage.input, response.usage.output) = (prompt, answer);
        }
        response.usage.calls = response.usage.calls.max(1);
        is_unknown
    }

    /// Collects the facts known before the call.
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

    /// Returns the longest answer, up to `most`, with which the call fits into the account besides
    /// the `used` amounts.
    fn fitting(&self, call: &Call, account: &Account, used: Amounts, most: u64) -> Result<u64> {
        let fits = |answer| self.amounts(call, answer).map(|wanted| account.caps.refusal(used, wanted).is_none());
        if fits(most)? {
            return Ok(most);
        }
        if !fits(1)? {
            return Err(used_up(&account.caps, used, self.amounts(call, 1)?));
        }
        let (mut fitting, mut over) = (1, most);
        while over - fitting > 1 {
            let middle = fitting + (over - fitting) / 2;
            if fits(middle)? { fitting = middle } else { over = middle }
        }
        Ok(fitting)
    }
}

/// A planned call.
struct Call {
    model: Option<Arc<ModelInfo>>,
    prompt: u64,
    /// Maximum number of answer tokens.
    answer: u64,
    /// True if the request must set the limit, because the model has none.
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
