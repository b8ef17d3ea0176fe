//! Check that every wire accepts a conversation.

use agent::{
    ModelRequest,
    core::{History, Message, Result},
    llm::{
        AnthropicCodec, AnthropicProfile, GeminiCodec, GeminiProfile, OpenAiChatCodec, OpenAiResponsesCodec, Profile,
        RequestReader,
    },
    testing::detached_run,
};

/// Lists the faults of the conversation on the four wires, with one more user message, in the form
/// of the next request.
pub(crate) fn refusals(history: &History) -> Result<Vec<String>> {
    let mut next = history.clone();
    next.push(Message::user("and now?"))?;
    let codecs: [(&str, Box<dyn RequestReader>); 4] = [
        ("chat completions", Box::new(OpenAiChatCodec::new("m", Profile::openai())?)),
        ("responses", Box::new(OpenAiResponsesCodec::new("m", Profile::openai())?)),
        ("messages", Box::new(AnthropicCodec::new("m", AnthropicProfile::anthropic())?)),
        ("generateContent", Box::new(GeminiCodec::new("m", GeminiProfile::ai_studio())?)),
    ];
    let checked = codecs.iter().map(|(name, codec)| refused(&**codec, &next).err().map(|why| format!("{name}: {why}")));
    Ok(checked.flatten().collect())
}

/// Encodes the conversation and decodes it again: every call must have exactly one result.
fn refused(codec: &dyn RequestReader, history: &History) -> std::result::Result<(), String> {
    let request = ModelRequest::new(detached_run(history.clone()).cx().clone());
    let sent = codec.encode(&request).map_err(|e| format!("not written: {e}"))?;
    let read = codec.decode_request(sent.body()).map_err(|e| format!("not read: {e}"))?;
    let back = read.into_request(detached_run(History::default()).cx().clone());
    let pairs = |history: &History| {
        let calls = history.iter().filter_map(Message::as_assistant).map(|m| m.calls().count()).sum::<usize>();
        (calls, history.iter().filter_map(Message::as_tool).count())
    };
    let (ours, theirs) = (pairs(history), pairs(&back.messages));
    if ours != theirs || ours.0 != ours.1 {
        return Err(format!("{ours:?} calls and answers became {theirs:?}"));
    }
    History::from_messages(back.messages.iter().cloned()).map(drop).map_err(|e| format!("unpaired: {e}"))
}
