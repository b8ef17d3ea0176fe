//! A conversation under repair.

use agent_core::{AssistantMessage, Error, ErrorKind, History, Message, Result, Retry};

/// Messages of a request, copied on the first repair.
pub(super) struct Messages<'a> {
    history: &'a History,
    repaired: Option<Vec<Message>>,
}

impl<'a> Messages<'a> {
    pub(super) fn new(history: &'a History) -> Self {
        Self { history, repaired: None }
    }

    pub(super) fn get(&self, at: usize) -> Option<&Message> {
        match &self.repaired {
            Some(messages) => messages.get(at),
            None => self.history.get(at),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.repaired.as_ref().map_or(self.history.len(), Vec::len)
    }

    /// Returns all messages for editing.
    pub(super) fn all_mut(&mut self) -> &mut Vec<Message> {
        self.repaired.get_or_insert_with(|| self.history.iter().cloned().collect())
    }

    /// Returns the assistant's message at this index for editing.
    pub(super) fn assistant_mut(&mut self, at: usize) -> Option<&mut AssistantMessage> {
        match self.all_mut().get_mut(at) {
            Some(Message::Assistant(message)) => Some(message),
            _ => None,
        }
    }

    /// Returns the repaired conversation; `None` if nothing was repaired.
    pub(super) fn finish(self) -> Result<Option<History>> {
        let history = self.repaired.map(History::from_messages).transpose();
        history.map_err(|e| {
            let message = format!("the conversation cannot be repaired for the provider: {}", e.message());
            Error::new(ErrorKind::InvalidRequest, message).with_retry(Retry::Permanent)
        })
    }
}
