//! Checks of user messages.

use std::pin::pin;

use agent_core::{Message, ModelRequest, ModelResponse, Part, Result, RunCx};

use super::{GuardStage, GuardSubject, Guarded, Guardrails, Stopped};

/// Messages with their replacement texts.
type Replaced = Vec<(Message, String)>;

impl Guardrails {
    /// Runs guards on the user messages that no model has answered yet.
    pub(super) async fn check_input<'a, G>(
        &self,
        cx: &RunCx,
        guards: impl Fn() -> G + Send,
    ) -> Result<Result<Replaced, Stopped>>
    where
        G: Iterator<Item = &'a Guarded> + Send,
    {
        let history = cx.history();
        let first = history.len() - history.iter().rev().take_while(|m| matches!(m, Message::User(_))).count();
        let mut all = Vec::new();
        for (at, message) in history.iter().enumerate().skip(first) {
            let subject = GuardSubject { stage: GuardStage::Input, text: message.text(), tool: None };
            match self.ask(cx, guards(), &format!("input-{at}"), subject).await? {
                Ok(replaced) => all.extend(replaced.map(|text| (message.clone(), text))),
                Err(stopped) => return Ok(Err(stopped)),
            }
        }
        Ok(Ok(all))
    }

    /// Makes the call while the input is checked. The call is dropped as soon as the input fails a
    /// check.
    pub(super) async fn beside_the_call(
        &self,
        cx: &RunCx,
        call: impl Future<Output = Result<ModelResponse>> + Send,
    ) -> Result<Result<ModelResponse, Result<Stopped>>> {
        let parallel = || self.at(GuardStage::Input).filter(|guard| guard.config.parallel);
        if parallel().next().is_none() {
            return call.await.map(Ok);
        }
        let (mut call, mut check) = (pin!(call), pin!(self.check_input(cx, parallel)));
        let (checked, answered) = tokio::select! {
            biased;
            checked = &mut check => (checked, None),
            answered = &mut call => {
                let answered = answered?;
                (check.await, Some(answered))
            }
        };
        // The model was already called with the original text, so there is nothing to replace.
        match (checked, answered) {
            (Ok(Ok(_)), Some(answered)) => Ok(Ok(answered)),
            (Ok(Ok(_)), None) => call.await.map(Ok),
            (Ok(Err(stopped)), _) => Ok(Err(Ok(stopped))),
            (Err(e), _) => Ok(Err(Err(e))),
        }
    }
}

/// Replaces the texts in the stored history and in the current call.
pub(super) fn replace(cx: &RunCx, req: &mut ModelRequest, replaced: &Replaced) -> Result<()> {
    if replaced.is_empty() {
        return Ok(());
    }
    let edit = |messages: &mut Vec<Message>| {
        for (old, text) in replaced {
            let place = messages.iter_mut().rev().find(|message| *message == old);
            if let Some(Message::User(message)) = place {
                let parts = message.parts_mut();
                parts.retain(|part| part.as_text().is_none());
                parts.insert(0, Part::text(text.as_str()));
            }
        }
    };
    let mut kept = cx.history();
    kept.edit(edit)?;
    cx.replace_history(kept, agent_core::history::ReplaceReason::Other("guardrails".into()));
    req.messages.edit(edit)
}
