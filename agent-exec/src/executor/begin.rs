//! The start of a run.

use agent_core::{
    EventKind, History, Message, Part, Result, SystemMessage, engine::Hook, history::Repair, journal::EntryBody,
};
use serde_json::Value;

use super::{Active, caught};
use crate::engine::Opened;
use crate::prompts::SYSTEM_PROMPT;

impl Active<'_> {
    /// Adds the new messages to the history, repairing unpaired ones, warms up the agent's
    /// resources, and enters the middlewares.
    pub(super) async fn begin(
        &mut self,
        warm_up: impl Future<Output = Result<()>>,
        system: Option<Result<String>>,
        messages: Vec<Message>,
        entered: &mut usize,
    ) -> Result<()> {
        let cx = self.cx().clone();
        let repairs = self.take_messages(messages)?;
        self.set_system(system).await?;
        cx.engine().keep_steering(); // after the messages of the request, which are not steering
        caught("warm_up", warm_up).await?;
        for (i, m) in self.list.iter().enumerate() {
            let at = cx.engine().in_hook(Hook::BeforeAgent, i);
            cx.engine().run_hook(&**m, m.before_agent(&at)).await?;
            *entered += 1;
        }
        self.driver.enter();
        cx.engine().log().commit().await?;
        for repair in repairs {
            cx.emit(EventKind::Warning { message: format!("the messages of the request were repaired: {repair:?}") });
        }
        if cx.history().iter().all(|message| matches!(message, Message::System(_))) {
            let message = "nobody but the system says anything: the model is asked all the same".into();
            cx.emit(EventKind::Warning { message });
        }
        Ok(())
    }

    /// Adds the messages of the request, which may contain turns of the caller's own history, and
    /// returns the repairs made to them.
    fn take_messages(&self, messages: Vec<Message>) -> Result<Vec<Repair>> {
        let (new, repairs) = History::import(messages);
        let mut new = new.iter().cloned().peekable();
        while let Some(message) = new.next() {
            match message {
                Message::Assistant(m) if m.has_calls() => {
                    let results = std::iter::from_fn(|| new.next_if(|m| m.as_tool().is_some()));
                    let results: Vec<_> = results.filter_map(|m| m.as_tool().cloned()).collect();
                    let turn = EntryBody::of_turn(m, &results);
                    turn.into_iter().for_each(|body| self.cx().engine().log().record(body));
                }
                other => self.driver.push(other)?,
            }
        }
        Ok(repairs)
    }

    /// Restores the recorded system prompt, or records the one just rendered.
    async fn set_system(&mut self, rendered: Option<Result<String>>) -> Result<()> {
        let cx = self.cx();
        let rendered = match rendered {
            Some(rendered) => rendered,
            // restores the recorded prompt
            None if cx.engine().log().is_decided(SYSTEM_PROMPT) => Ok(String::new()),
            None => return Ok(()),
        };
        let text = cx.decide(SYSTEM_PROMPT, async { rendered.map(Value::from) }).await?;
        self.system = Some(SystemMessage::new(vec![Part::text(text.as_str().unwrap_or_default())]));
        Ok(())
    }
}
