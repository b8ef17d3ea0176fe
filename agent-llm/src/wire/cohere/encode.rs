//! Writing requests.

use agent_core::{History, Message, ModelRequest, SystemMessage, ToolChoice, ToolSpec};

use super::settings::Settings;
use crate::wire::{
    json::write_with,
    openai_chat::{
        encode::Words,
        messages::{Manner, Messages, write_spoken},
    },
};

/// A request in Cohere's words.
pub(super) struct CohereWords<'a> {
    pub(super) req: &'a ModelRequest,
    pub(super) manner: &'a Manner,
}

impl Words for CohereWords<'_> {
    fn manner(&self) -> &Manner {
        self.manner
    }

    fn offers(&self, spec: &ToolSpec) -> bool {
        !matches!(&self.req.params.tool_choice, Some(ToolChoice::Tool(name)) if *name != spec.name)
    }

    fn write_settings(&self, has_tools: bool, out: &mut Vec<u8>) {
        let params = &self.req.params;
        let settings = Settings::new(self.manner.origin.model(), params, has_tools, self.req.stream);
        write_with(&settings, &params.extra, out);
    }

    fn write_system(&self, system: &SystemMessage, out: &mut Vec<u8>) {
        write_spoken(self.manner, "system", system.raw(), system.parts(), out);
    }

    fn write_message(&self, history: &History, at: usize, message: &Message, out: &mut Vec<u8>) {
        Messages { manner: self.manner, history }.write(at, message, out);
    }
}
