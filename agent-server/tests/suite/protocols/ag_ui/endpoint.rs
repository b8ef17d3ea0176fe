//! `POST /ag-ui/{agent}` over real sockets.

use serde_json::{Value, json};

use super::super::served::{Answer, Served};
use super::rules;

/// Front end with its thread and messages.
struct FrontEnd<'a> {
    served: &'a Served,
    thread: &'static str,
    messages: Vec<Value>,
    tools: Value,
}

impl<'a> FrontEnd<'a> {
    fn new(served: &'a Served, thread: &'static str) -> Self {
        Self { served, thread, messages: Vec::new(), tools: json!([]) }
    }

    fn says(&mut self, text: &str) -> &mut Self {
        let id = format!("u{}", self.messages.len());
        self.messages.push(json!({"id": id, "role": "user", "content": text}));
        self
    }

    async fn post(&self, run: &str, resume: Value) -> Answer {
        let body = json!({"threadId": self.thread, "runId": run, "protocolVersion": "1.0", "messages": self.messages,
            "tools": self.tools, "context": [], "state": {}, "forwardedProps": {}, "resume": resume});
        self.served.post("/ag-ui/actor", &body).await
    }

    /// Runs a request and returns its events, which must follow the protocol's rules.
    async fn run(&self, run: &str, resume: Value) -> Vec<Value> {
        let answer = self.post(run, resume).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.head.contains("content-type: text/event-stream"), "{}", answer.head);
        let events = answer.frames();
        assert_eq!(rules::check(&events), Ok(()), "{events:#?}");
        assert_eq!((&events[0]["threadId"], &events[0]["runId"]), (&json!(self.thread), &json!(run)));
        events
    }
}

fn of<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == *kind).collect()
}

fn said(events: &[Value]) -> String {
    of(events, "TEXT_MESSAGE_CONTENT").iter().filter_map(|event| event["delta"].as_str()).collect()
}

#[tokio::test]
async fn a_run_is_told_with_its_calls_its_state_and_its_sub_agents() {
    let served = Served::start().await;
    let events = FrontEnd::new(&served, "tool").says("tool").run("r", json!(null)).await;
    assert_eq!(of(&events, "TOOL_CALL_RESULT")[0]["content"], "17 degrees in Bern");
    assert_eq!(of(&events, "ACTIVITY_SNAPSHOT")[0]["activityType"], "TOOL_PROGRESS");
    assert!(said(&events).ends_with("So it is: 17 degrees in Bern."), "{}", said(&events));
    assert_eq!(events.last().expect("an end")["usage"][0]["totalTokens"], 30);

    let events = FrontEnd::new(&served, "state").says("state").run("r", json!(null)).await;
    let mut state = of(&events, "STATE_SNAPSHOT")[0]["snapshot"].clone();
    for delta in of(&events, "STATE_DELTA") {
        let patch: json_patch::Patch = serde_json::from_value(delta["delta"].clone()).expect("a patch");
        json_patch::patch(&mut state, &patch).expect("it applies");
    }
    assert_eq!(state, json!({"plan": ["look", "leap"]}), "what is not shared is not told");

    let events = FrontEnd::new(&served, "agents").says("agents").run("r", json!(null)).await;
    let started = of(&events, "SUBAGENT_STARTED");
    assert_eq!(started.len(), 4);
    let below = started.iter().filter(|event| event.get("parentSubagentRunId").is_some()).count();
    assert_eq!((below, of(&events, "SUBAGENT_FINISHED").len()), (2, 4));
    assert!(started.iter().all(|event| event.get("parentToolCallId").is_some()), "{started:#?}");
}

#[tokio::test]
async fn an_interrupt_is_answered_by_the_next_run_and_by_that_answer_alone() {
    let served = Served::start().await;
    let mut front_end = FrontEnd::new(&served, "ask");
    let events = front_end.says("ask").run("r1", json!(null)).await;
    let interrupt = &events.last().expect("an end")["outcome"]["interrupts"][0];
    assert_eq!((&interrupt["reason"], &interrupt["toolCallId"]), (&json!("approval"), &json!("c1")));
    let answer = |id: &Value| json!([{"interruptId": id, "status": "resolved", "payload": {"approved": true}}]);

    let forged = front_end.post("r2", answer(&json!("c1/approval"))).await;
    assert_eq!((forged.status, &forged.json()["error"]["code"]), (409, &json!("answer_refused")));
    let other = FrontEnd::new(&served, "other").post("r2", answer(&interrupt["id"])).await;
    assert_eq!(other.status, 409, "another thread waits for nothing");
    front_end.says("never mind");
    let ignored = front_end.post("r2", json!(null)).await;
    assert_eq!((ignored.status, &ignored.json()["error"]["code"]), (409, &json!("busy")), "a person is to decide");
    front_end.messages.pop();

    let resumed = front_end.run("r3", answer(&interrupt["id"])).await;
    assert!(of(&resumed, "TOOL_CALL_START").is_empty(), "the call began in the run before: {resumed:#?}");
    assert_eq!(of(&resumed, "TOOL_CALL_RESULT")[0]["content"], "refunded \"A-17\"");
    assert_eq!(said(&resumed), "So it is: refunded \"A-17\".");
    let again = front_end.post("r4", answer(&interrupt["id"])).await;
    assert_eq!(again.status, 409, "it was answered");
}

#[tokio::test]
async fn calls_of_the_front_ends_tools_wait_for_their_results() {
    let served = Served::start().await;
    let mut front_end = FrontEnd::new(&served, "color");
    front_end.tools =
        json!([{"name": "pick_color", "description": "Asks for a colour.", "parameters": {"type": "object"}}]);
    let events = front_end.says("both").run("r1", json!(null)).await;
    let pending = &events.last().expect("an end")["outcome"];
    assert_eq!(*pending, json!({"type": "success", "pendingToolCallIds": ["c2"]}));
    assert_eq!(of(&events, "TOOL_CALL_RESULT").len(), 1, "the agent's own tool ran");

    front_end.messages.push(json!({"id": "a1", "role": "assistant", "toolCalls": []}));
    front_end.messages.push(json!({"id": "t1", "role": "tool", "toolCallId": "c2", "content": "red"}));
    let events = front_end.run("r2", json!(null)).await;
    assert_eq!(said(&events), "So it is: 17 degrees in Bern, red.");

    front_end.tools[0]["name"] = "weather".into();
    let taken = front_end.says("color").post("r3", json!(null)).await;
    assert_eq!(taken.status, 400, "{taken:?}");
    assert!(taken.body.contains("duplicate tool 'weather'"), "{}", taken.body);
}

#[tokio::test]
async fn a_run_that_is_approved_elsewhere_keeps_the_front_ends_tools() {
    let served = Served::start().await;
    let mut front_end = FrontEnd::new(&served, "sell");
    front_end.tools = json!([{"name": "pick_color", "description": "", "parameters": {"type": "object"}}]);
    front_end.says("sell").run("r1", json!(null)).await;
    let waiting = served.get("/api/questions?session=sell").await.json()["questions"][0].clone();
    let path = format!("/api/runs/{}", waiting["run"].as_str().expect("a run"));
    let answers = json!({"answers": [{"question": waiting["question"]["id"], "allow": true}]});
    assert_eq!(served.post(&format!("{path}/answers"), &answers).await.status, 202);
    let run = served.get(&format!("{path}?wait=10")).await.json();
    assert_eq!((&run["status"], &run["questions"][0]["kind"]), (&json!("waiting"), &json!("client_tool")), "{run}");
}

#[tokio::test]
async fn who_says_something_else_leaves_his_own_calls() {
    let served = Served::start().await;
    let mut front_end = FrontEnd::new(&served, "left");
    front_end.tools = json!([{"name": "pick_color", "description": "", "parameters": {"type": "object"}}]);
    front_end.says("color").run("r1", json!(null)).await;
    front_end.messages.push(json!({"id": "a1", "role": "assistant", "toolCalls": []}));
    let events = front_end.says("hello").run("r2", json!(null)).await;
    assert_eq!(said(&events), "You said: hello.");
}

#[tokio::test]
async fn a_run_that_is_cancelled_or_fails_says_so_and_the_thread_goes_on() {
    let served = Served::start().await;
    let events = FrontEnd::new(&served, "cancel").says("cancel").run("r", json!(null)).await;
    assert_eq!(events.last().expect("an end")["outcome"], json!({"type": "cancelled"}));

    let mut front_end = FrontEnd::new(&served, "fail");
    let events = front_end.says("fail").run("r1", json!(null)).await;
    let end = events.last().expect("an end");
    assert_eq!((&end["type"], &end["code"]), (&json!("RUN_ERROR"), &json!("provider")));
    let events = front_end.says("hello").run("r2", json!(null)).await;
    assert_eq!(said(&events), "You said: hello.");
}

#[tokio::test]
async fn the_same_message_again_is_the_same_run() {
    let served = Served::start().await;
    let mut front_end = FrontEnd::new(&served, "again");
    front_end.says("hello");
    let (first, again) = (front_end.run("r1", json!(null)).await, front_end.run("r2", json!(null)).await);
    assert_eq!(said(&first), said(&again));
    let ids = |events: &[Value]| of(events, "TEXT_MESSAGE_START")[0]["messageId"].clone();
    assert_eq!(ids(&first), ids(&again));
    front_end.messages.push(json!({"id": "a1", "role": "assistant", "content": "You said: hello."}));
    assert_eq!(front_end.post("r3", json!(null)).await.status, 400, "there is nothing new");
}

#[tokio::test]
async fn a_page_that_is_drawn_twice_does_not_cancel_its_run_when_the_first_is_taken_down() {
    let served = Served::start().await;
    let message = json!({"id": "u1", "role": "user", "content": "nap"});
    let body = json!({"threadId": "twice", "runId": "r", "messages": [message]});
    let (left, stayed) =
        tokio::join!(served.leave_at("/ag-ui/actor", &body, "TOOL_CALL_START"), served.post("/ag-ui/actor", &body),);
    assert!(left.contains("TOOL_CALL_START"));
    let events = stayed.frames();
    assert_eq!(events.last().expect("an end")["type"], "RUN_FINISHED", "{events:#?}");
    assert_eq!(said(&events), "So it is: napped.");
}

#[tokio::test]
async fn what_cannot_be_is_refused_before_anything_happens() {
    let served = Served::start().await;
    let input = json!({"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "hi"}]});
    assert_eq!(served.post("/ag-ui/nobody", &input).await.status, 404);
    assert_eq!(served.post("/ag-ui/actor", &json!({"runId": "r"})).await.status, 400);
    let mut odd = input.clone();
    odd["messages"][0]["role"] = "king".into();
    let refused = served.post("/ag-ui/actor", &odd).await;
    assert!(refused.status == 400 && refused.body.contains("message 0"), "{refused:?}");
    let described = served.get("/ag-ui/actor").await.json();
    assert_eq!(described["transport"]["streaming"], true);
}

#[tokio::test]
async fn who_goes_away_cancels_the_run_unless_it_is_to_go_on() {
    let served = Served::start().await;
    for (detach, status, wait) in [(false, "cancelled", 30), (true, "running", 1)] {
        let message = json!({"id": "u1", "role": "user", "content": "slow"});
        let body = json!({"threadId": format!("gone {detach}"), "runId": "r", "messages": [message],
            "forwardedProps": {"detach": detach}});
        let seen = served.leave_at("/ag-ui/actor", &body, "TOOL_CALL_END").await;
        let run =
            seen.split("parentMessageId\":\"").nth(1).and_then(|rest| rest.split("-1\"").next()).expect("its run");
        let found = served.get(&format!("/api/runs/{run}?wait={wait}")).await.json();
        assert_eq!(found["status"], status, "{found}");
    }
}
