//! Encoding of requests.

use agent_core::{ModelRequest, ToolChoice, ToolSpec};

use super::{CohereCodec, settings::fields};
use crate::wire::{
    json::write_with,
    openai_chat::{encode::Words, messages::MessageStyle},
};

impl Words for CohereCodec {
    fn manner(&self) -> &MessageStyle {
        &self.manner
    }

    fn offers(&self, req: &ModelRequest, spec: &ToolSpec) -> bool {
        !matches!(&req.params.tool_choice, Some(ToolChoice::Tool(name)) if *name != spec.name)
    }

    fn write_settings(&self, req: &ModelRequest, has_tools: bool, out: &mut Vec<u8>) {
        let fields = fields(self.manner.origin.model(), &req.params, has_tools, req.stream);
        write_with(&fields, &req.params.extra, out);
    }
}
