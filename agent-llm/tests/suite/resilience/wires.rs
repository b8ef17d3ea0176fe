//! Switching from one provider's wire to another's within one conversation.

use std::sync::Arc;

use agent_core::{History, Message, Model, ModelRequest, ToolOutput, testing::detached_run};
use agent_llm::Failover;

use super::common::{Answer, Provider, Step, ask_to_stream, listen, say};

/// Provider-specific content: it must be sent back to its provider, and to no other.
const PRIVATE: &str = "only-for-its-own-provider";

/// One provider behind some wire.
struct Wire {
    name: &'static str,
    model: fn(Provider) -> Arc<dyn Model>,
    /// An answer that says "Let me look." and calls `weather` with the id `ID` and Oslo, with
    /// `PRIVATE` somewhere in it.
    turn: &'static str,
    /// The beginning of a stream that says "Half an" and breaks off.
    half: &'static str,
}

/// Add a line to cover another wire.
const WIRES: [Wire; 2] = [
    Wire { name: "chat at acme", model: |provider| openai_chat("acme", provider), turn: CHAT_TURN, half: CHAT_HALF },
    Wire {
        name: "chat at zenith",
        model: |provider| openai_chat("zenith", provider),
        turn: CHAT_TURN,
        half: CHAT_HALF,
    },
];

fn openai_chat(at: &str, provider: Provider) -> Arc<dyn Model> {
    let at = agent_llm::Provider::new(at, agent_llm::Wire::Chat, &format!("http://{at}.test/v1"));
    Arc::new(at.model("m").transport(provider).retries(0).build().expect("a model"))
}

const CHAT_TURN: &str = r#"{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant",
    "content":"Let me look.","reasoning_details":[{"data":"PRIVATE"}],"tool_calls":[{"id":"ID","type":"function",
    "function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}}]}}]}"#;

const CHAT_HALF: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Half an\"}}]}\n\n";

/// Returns all pairs of wires.
fn pairs() -> impl Iterator<Item = (&'static Wire, &'static Wire)> {
    let others = |i: usize| WIRES.iter().enumerate().filter(move |(j, _)| *j != i).map(|(_, wire)| wire);
    WIRES.iter().enumerate().flat_map(move |(i, wire)| others(i).map(move |other| (wire, other)))
}

impl Wire {
    /// Returns its turn with this call id.
    fn answer(&self, id: &str) -> Answer {
        Answer::json(200, self.turn.replace("PRIVATE", &self.private()).replace("ID", id))
    }

    fn private(&self) -> String {
        format!("{PRIVATE} {}", self.name)
    }
}

fn down() -> Answer {
    Answer::json(503, r#"{"error":{"message":"busy"}}"#)
}

/// Requests the next turn of the conversation and answers its call.
async fn go_on(model: &dyn Model, history: &mut History) {
    let response = model.call(ModelRequest::new(detached_run(history.clone()).cx().clone())).await.expect("an answer");
    let call = response.message.calls().next().expect("a call").clone();
    let result = ToolOutput::text(format!("rain for {}", call.id)).to_message(call.id, call.name);
    history.push_turn(response.message, vec![result]).expect("a turn");
}

#[tokio::test]
async fn a_conversation_goes_from_each_wire_to_each_other_and_back_and_nobodys_raw_turn_goes_astray() {
    for (first, second) in pairs() {
        let pair = format!("{} -> {}", first.name, second.name);
        let [one, two] = [
            Provider::new([first.answer("call-1"), down(), first.answer("call-3")]),
            Provider::new([second.answer("call-2")]),
        ];
        let model = Failover::builder((first.model)(one.clone())).fallback((second.model)(two.clone()));
        let model = model.build().expect("builds");
        let mut history = History::from_messages([Message::user("What is it like in Oslo?")]).expect("paired");
        for _ in 0..3 {
            go_on(&model, &mut history).await;
        }

        let asked = two.bodies()[0].to_string();
        for said in ["Let me look.", "call-1", "Oslo", "weather", "rain for call-1"] {
            assert!(asked.contains(said), "{pair}: '{said}' is missing in {asked}");
        }
        assert!(!asked.contains(PRIVATE), "{pair}: a foreign raw turn in {asked}");

        let back = one.bodies()[2].to_string();
        for said in ["call-1", "rain for call-1", "call-2", "rain for call-2", &first.private()] {
            assert!(back.contains(said), "{pair}: '{said}' is missing in {back}");
        }
        assert!(!back.contains(&second.private()), "{pair}: a foreign raw turn in {back}");
        assert_eq!((one.calls(), two.calls(), history.len()), (3, 1, 7), "{pair}");
    }
}
#[tokio::test]
async fn a_stream_that_breaks_off_is_taken_back_before_another_wires_answer() {
    for (first, second) in pairs() {
        let pair = format!("{} -> {}", first.name, second.name);
        let broken = Answer::stream([say(first.half), Step::Break]);
        let [one, two] = [Provider::new([broken]), Provider::new([second.answer("call-1")])];
        let model = Failover::builder((first.model)(one)).fallback((second.model)(two)).build().expect("builds");
        let mut req = ask_to_stream();
        let heard = listen(&mut req);
        let response = model.call(req).await.expect("an answer");
        assert_eq!(super::texts(&heard), ["Half an", "|", "Let me look."], "{pair}");
        assert_eq!((response.message.text().as_str(), response.message.calls().count()), ("Let me look.", 1), "{pair}");
        assert!(!response.message.is_edited(), "{pair}: it goes back as it came");
    }
}
