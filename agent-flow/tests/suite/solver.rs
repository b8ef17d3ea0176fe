//! Tests of the solver: a planner, a worker, a verifier and a generator on the executor.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agent_core::{
    Effect, ErrorKind, Media, MemoryJournal, Message, ModelInfo, Part, Result, RunCx, RunRequest, StateField,
    StateSchema, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, Toolset, async_trait,
    testing::{ScriptedModel, Turn},
};
use agent_flow::{
    Ending, Method, Models, Output, Prompts, Query, QueryCache, Role, Scene, Slot, Solution, Solver, StepProblem,
    ToolMetadata,
};
use agent_middleware::Approval;
use serde_json::{Value, json};

// --- answers of the roles ---

fn analysis() -> Turn {
    Turn::text(
        r#"{"concise_summary": "s", "required_skills": "k", "relevant_tools": "t", "additional_considerations": "c"}"#,
    )
}

fn plan(tool: &str) -> Turn {
    Turn::text(json!({"justification": "j", "context": "c", "sub_goal": "g", "tool_name": tool}).to_string())
}

fn command(calls: &Value) -> Turn {
    Turn::text(json!({"analysis": "a", "explanation": "e", "calls": calls}).to_string())
}

fn query(text: &str) -> Turn {
    command(&json!([{"id": "call-1", "arguments": {"query": text}}]))
}

fn verdict(stop: bool) -> Turn {
    Turn::text(json!({"analysis": "a", "stop_signal": stop}).to_string())
}

/// A tool that echoes its query in a JSON object; `boom` makes it fail.
struct Search(Arc<AtomicUsize>);

#[async_trait]
impl Tool for Search {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]});
        ToolSpec::new("Web_Search_Tool", "Searches.", parameters)
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        self.0.fetch_add(1, Ordering::SeqCst);
        match req.args["query"].as_str().unwrap_or_default() {
            "boom" => Ok(ToolOutput::error("it broke")),
            "hang" => std::future::pending().await,
            query => Ok(ToolOutput::value(json!({"found": [query]}))),
        }
    }
}

fn search() -> Search {
    Search(Arc::default())
}

fn solver(turns: Vec<Turn>) -> (Solver, ScriptedModel) {
    let model = ScriptedModel::new(turns);
    let solver = Solver::builder(Models::all(model.clone())).tool(search()).outputs([Output::Direct]).build();
    (solver.expect("builds"), model)
}

async fn solve(turns: Vec<Turn>) -> Solution {
    let (solver, model) = solver(turns);
    let solution = solver.solve("Why?").await.expect("is solved");
    model.assert_finished();
    solution
}

// --- the course of a run ---

#[tokio::test(start_paused = true)]
async fn the_verifier_ends_the_steps_and_the_limit_does_if_it_does_not() {
    let step = |stop| [plan("Web_Search_Tool"), query("a"), verdict(stop)];
    let turns = [vec![analysis()], step(false).into(), step(true).into(), vec![Turn::text("because")]].concat();
    let solution = solve(turns).await;
    assert_eq!((solution.ending, solution.step_count()), (Some(Ending::Verified), 2));
    assert_eq!(solution.answer(), Some("because"));
    let actions = solution.memory.actions_json();
    let names: Vec<_> = actions.as_object().expect("an object").keys().collect();
    assert_eq!(names, ["Action Step 1", "Action Step 2"]);
    assert_eq!(actions["Action Step 1"]["result"], json!([r#"{"found":["a"]}"#]));

    let model = ScriptedModel::new(
        std::iter::once(analysis()).chain((0..3).flat_map(|_| step(false))).chain([Turn::text("unsure")]),
    );
    let builder = Solver::builder(Models::all(model.clone())).tool(search()).outputs([Output::Direct]);
    let solution = builder.max_steps(3).build().expect("builds").solve("Why?").await.expect("is solved");
    model.assert_finished();
    assert_eq!((solution.ending, solution.step_count()), (Some(Ending::StepLimit), 3));
    assert!(model.requests()[4].texts()[0].contains("It is step 2 of at most 3"), "the planner knows its budget");
}

#[tokio::test(start_paused = true)]
async fn only_the_answer_without_steps_is_one_model_call() {
    let model = ScriptedModel::new([Turn::text("42")]);
    let solver =
        Solver::builder(Models::new().planner_main(model.clone())).outputs(Output::list(" base").expect("known"));
    let solution = solver.build().expect("builds").solve("Six times seven?").await.expect("is solved");
    assert_eq!(model.requests()[0].params.max_tokens, Some(4000));
    assert_eq!(model.requests()[0].texts(), ["Six times seven?"]);
    let audit = solution.audit();
    let keys: Vec<_> = audit.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["base_response", "image", "query"]);
    assert_eq!((solution.ending, solution.step_count()), (Some(Ending::NoSteps), 0));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_not_there_takes_a_step_which_is_recorded_and_verified() {
    let solution = solve(vec![analysis(), plan("Nope"), verdict(true), Turn::text("no idea")]).await;
    let action = &solution.memory.actions[0];
    assert_eq!(action.problem, Some(StepProblem::UnknownTool { asked: "Nope".into() }));
    let audit = solution.audit();
    assert!(audit.get("tool_result_1").is_none() && audit.get("tool_commander_1_prompt").is_none());
    assert!(audit["verifier_1_prompt"].as_str().expect("a prompt").contains("there is no tool 'Nope'"));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_asked_for_once_more_and_then_recorded() {
    let turns = vec![
        analysis(),
        Turn::text("hm"),
        plan("`web search-tool`").expect(|seen| match seen.texts()[0].contains("has no section Context") {
            true => Ok(()),
            false => Err("the planner must be told what is wrong".into()),
        }),
        Turn::text("import os"),
        command(&json!([{"id": "call-1", "arguments": {"limit": 1}}])),
        verdict(false),
        Turn::text("hm"),
        Turn::text("hm"),
        verdict(true),
        Turn::text("done"),
    ];
    let solution = solve(turns).await;
    let [refused, unread] = &solution.memory.actions[..] else { panic!("two steps") };
    let Some(StepProblem::RefusedCommand { problem }) = &refused.problem else { panic!("{refused:?}") };
    assert!(problem.contains("'query' is required"), "{problem}");
    assert!(matches!(unread.problem, Some(StepProblem::UnreadableStep { .. })), "{unread:?}");
    assert!(solution.audit()["action_predictor_1_repair_response"].as_str().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_leaves_the_results_of_the_others() {
    let calls = command(&json!([
        {"id": "call-1", "arguments": {"query": "a"}},
        {"id": "call-2", "arguments": {"query": "boom"}},
        {"id": "call-3", "arguments": {"query": {"$ref": "call-1#/found/0"}}},
        {"id": "call-4", "arguments": {"query": {"$ref": "call-2"}}},
    ]));
    let next = command(&json!([{"id": "call-1", "arguments": {"query": {"$ref": "step-1/call-3#/found/0"}}}]));
    let turns = vec![
        analysis(),
        plan("Web_Search_Tool"),
        calls,
        verdict(false),
        plan("Web_Search_Tool"),
        next,
        verdict(true),
        Turn::text("done"),
    ];
    let solution = solve(turns).await;
    let results: Vec<_> =
        solution.memory.actions[0].results.iter().map(|r| (r.id.as_str(), r.result.as_str())).collect();
    let found = r#"{"found":["a"]}"#;
    assert_eq!(
        results,
        [
            ("call-1", found),
            ("call-2", "it broke"),
            ("call-3", found),
            ("call-4", "Not run: 'call-2' has no result: it failed."),
        ]
    );
    let failed = StepProblem::FailedCalls { ids: vec!["call-2".into(), "call-4".into()] };
    assert_eq!(solution.memory.actions[0].problem, Some(failed));
    assert_eq!(solution.memory.actions[1].results[0].result, found, "results of earlier steps can be referred to");
}

#[tokio::test(start_paused = true)]
async fn literal_python_is_a_plan_of_calls_in_order() {
    let python = "```python\nexecution = tool.execute(query=\"a\")\nexecution = tool.execute(\n    query='b',\n)\n```";
    let solution = solve(vec![
        analysis(),
        plan("Web_Search_Tool"),
        Turn::text(python),
        Turn::text("**Conclusion**: STOP"),
        Turn::text("done"),
    ])
    .await;
    let results: Vec<_> = solution.memory.actions[0].results.iter().map(|r| r.result.as_str()).collect();
    assert_eq!(results, [r#"{"found":["a"]}"#, r#"{"found":["b"]}"#]);
}

#[tokio::test(start_paused = true)]
async fn zero_steps_and_no_time_have_an_outcome() {
    let build = |turns: Vec<Turn>| {
        let model = ScriptedModel::new(turns);
        Solver::builder(Models::all(model)).tool(search()).outputs([Output::Final, Output::Direct])
    };
    let outputs = || vec![Turn::text("long"), Turn::text("short")];
    let solution = build(outputs()).max_steps(0).build().expect("builds").solve("Why?").await.expect("is solved");
    assert_eq!((solution.ending, solution.step_count()), (Some(Ending::StepLimit), 0));
    assert_eq!((solution.output(Output::Final), solution.output(Output::Direct)), (Some("long"), Some("short")));
    let late = build(outputs()).max_time(Duration::ZERO).build().expect("builds");
    let solution = late.solve("Why?").await.expect("is solved");
    assert_eq!((solution.ending, solution.answer()), (Some(Ending::TimeLimit), Some("long")));
}

#[tokio::test(start_paused = true)]
async fn time_that_is_up_cancels_what_is_under_way_and_the_outputs_are_written() {
    let hanging_tool = vec![analysis(), plan("Web_Search_Tool"), query("hang"), Turn::text("in short")];
    let hanging_model = vec![analysis(), Turn::text("slow").delay(Duration::from_secs(1000)), Turn::text("in short")];
    for (turns, steps) in [(hanging_tool, 1), (hanging_model, 0)] {
        let (solver, model) = solver(turns);
        let before = tokio::time::Instant::now();
        let solution = solver.solve("Why?").await.expect("is solved");
        model.assert_finished();
        assert_eq!((solution.ending, solution.step_count()), (Some(Ending::TimeLimit), steps));
        assert_eq!(solution.answer(), Some("in short"));
        let took = before.elapsed().as_secs();
        assert!((300..302).contains(&took), "{took} s");
        assert_eq!(solution.execution_time.as_secs(), took, "what is told is what it took");
    }
}

#[tokio::test(start_paused = true)]
async fn an_output_that_comes_too_late_is_left_out() {
    let slow = Turn::text("slow").delay(Duration::from_secs(1000));
    let model = ScriptedModel::new([slow, Turn::text("short")]);
    let solver = Solver::builder(Models::all(model)).tool(search()).max_steps(0).build().expect("builds");
    let solution = solver.solve("Why?").await.expect("is solved");
    assert_eq!((solution.output(Output::Final), solution.answer()), (None, Some("short")));
}

#[tokio::test(start_paused = true)]
async fn a_second_query_begins_with_an_empty_memory() {
    let course = || [analysis(), plan("Web_Search_Tool"), query("a"), verdict(true), Turn::text("done")];
    let (solver, model) = solver(course().into_iter().chain(course()).collect());
    for _ in 0..2 {
        let request = solver.request("Why?").session("s");
        let end = solver.agent().start(request).await.expect("runs").finished().expect("finishes");
        assert_eq!(solver.solution(&end).expect("a solver's").step_count(), 1);
    }
    assert!(!model.requests()[6].texts()[0].contains("Actions so far"));
}

#[tokio::test(start_paused = true)]
async fn the_session_s_earlier_runs_are_not_part_of_a_query() {
    let course = || [analysis(), plan("Web_Search_Tool"), query("a"), verdict(true), Turn::text("done")];
    let model = ScriptedModel::new(course().into_iter().chain(course()));
    let journal = MemoryJournal::default();
    let builder = Solver::builder(Models::all(model)).tool(search()).outputs([Output::Direct]);
    let solver = builder.agent(move |agent| agent.store(journal)).build().expect("builds");
    for question in ["First?", "Second?"] {
        let end = solver.agent().start(solver.request(question).session("s")).await.expect("runs");
        let solution = solver.solution(&end.finished().expect("finishes")).expect("a solver's");
        assert_eq!((solution.memory.query.text.as_str(), solution.step_count()), (question, 1));
    }
}

// --- models, prompts, tools ---

#[tokio::test(start_paused = true)]
async fn each_slot_is_asked_what_is_its_and_nothing_else() {
    let main = ScriptedModel::new([Turn::text("base"), plan("Web_Search_Tool")]);
    let fixed = ScriptedModel::new([analysis(), Turn::text("final"), Turn::text("direct")]);
    let (verifier, executor) = (ScriptedModel::new([verdict(true)]), ScriptedModel::new([query("a")]));
    let models = Models::new()
        .planner_main(main.clone())
        .planner_fixed(fixed.clone())
        .verifier(verifier.clone())
        .executor(executor.clone().with_info(ModelInfo::new("strict").with_json_schema()));
    let outputs = Output::list("base, final, direct").expect("known");
    let solver = Solver::builder(models).tool(search()).outputs(outputs).build().expect("builds");
    let solution = solver.solve("Why?").await.expect("is solved");
    [&main, &fixed, &verifier, &executor].iter().for_each(|model| model.assert_finished());
    let asked: Vec<_> =
        solution.calls.iter().map(|call| (call.method, call.method.role(), call.method.slot())).collect();
    assert_eq!(
        asked,
        [
            (Method::BaseResponse, Role::Planner, Slot::PlannerMain),
            (Method::AnalyzeQuery, Role::Planner, Slot::PlannerFixed),
            (Method::NextStep, Role::Planner, Slot::PlannerMain),
            (Method::ToolCommand, Role::Worker, Slot::Executor),
            (Method::Verify, Role::Verifier, Slot::Verifier),
            (Method::FinalOutput, Role::Generator, Slot::PlannerFixed),
            (Method::DirectOutput, Role::Generator, Slot::PlannerFixed),
        ]
    );
    let form = executor.requests()[0].params.output.clone().expect("a model that takes a schema is held to it");
    assert_eq!(form.schema["properties"]["calls"]["items"]["properties"]["arguments"]["required"], json!(["query"]));
    assert!(main.requests()[1].params.output.is_none(), "the others are told in words");
}

#[test]
fn a_slot_that_is_missing_or_never_asked_is_refused_and_so_is_a_solver_without_tools() {
    let model = || ScriptedModel::new([]);
    let refused = |models: Models, outputs: &str, tools: bool| {
        let mut builder = Solver::builder(models).outputs(Output::list(outputs).expect("known"));
        if tools {
            builder = builder.tool(search());
        }
        let e = builder.build().expect_err("is refused");
        assert_eq!(e.kind(), ErrorKind::Config);
        e.to_string()
    };
    let three = || Models::new().planner_main(model()).planner_fixed(model()).executor(model());
    assert!(refused(three(), "final", true).contains("slot 'verifier' has no model"));
    assert!(refused(three(), "base", true).contains("slot 'planner_fixed' would never be asked"));
    let five = Models::all(model()).planner_main(model()).planner_fixed(model()).executor(model()).verifier(model());
    assert!(refused(five, "final", true).contains("leave out the one of Models::all"));
    assert!(refused(Models::all(model()), "final", false).contains("without tools"));
    assert!(Solver::builder(Models::all(model())).outputs([]).build().is_err());
    let unknown = ToolMetadata::of(&ToolSpec::new("other", "", json!({})));
    let e = Solver::builder(Models::all(model())).tool(search()).describe(unknown).build().expect_err("unknown");
    assert!(e.to_string().contains("there are: Web_Search_Tool"), "{e}");
}

#[test]
fn tools_that_change_during_a_run_are_refused() {
    struct Changing;

    #[async_trait]
    impl Toolset for Changing {
        async fn tools(&self, _: &RunCx) -> Result<Vec<Arc<dyn Tool>>> {
            Ok(vec![Arc::new(search())])
        }
    }

    let builder = Solver::builder(Models::all(ScriptedModel::new([]))).tool(search());
    let e = builder.agent(|agent| agent.toolset(Changing)).build().expect_err("is refused");
    assert!(e.to_string().contains("tools that do not change"), "{e}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_s_own_state_stays_beside_the_solver_s() {
    let schema = StateSchema::default().key("mood", StateField::of::<String>().default_value(json!("good")));
    let model = ScriptedModel::new([Turn::text("Hello.")]);
    let builder = Solver::builder(Models::new().planner_main(model)).outputs([Output::Base]);
    let solver = builder.agent(|agent| agent.state(schema)).build().expect("builds");
    let end = solver.agent().start(solver.request("Hi.")).await.expect("runs").finished().expect("finishes");
    assert_eq!(end.state["mood"], "good");
    assert_eq!(solver.solution(&end).expect("a solver's").answer(), Some("Hello."));
}

#[tokio::test(start_paused = true)]
async fn the_roles_see_files_images_and_what_is_said_of_tools() {
    struct Short;
    impl Prompts for Short {
        fn direct_output(&self, scene: &Scene<'_>) -> String {
            format!("{}: {}", scene.memory.query.text, scene.step)
        }
    }
    let model =
        ScriptedModel::new([analysis(), plan("Web_Search_Tool"), query("a"), verdict(true), Turn::text("done")]);
    let mut metadata = ToolMetadata::of(&search().spec());
    metadata.user_metadata = json!({"limitations": ["knows nothing of today"]});
    let solver = Solver::builder(Models::all(model.clone())).tool(search()).describe(metadata).prompts(Short);
    let solver = solver.outputs([Output::Direct]).build().expect("builds");
    let image = Part::Image(Media::url("https://example.com/a.png"));
    let query = Query::new("What is it?").attach(image.clone()).file("data.csv").described_file("b", "the key");
    let solution = solver.solve(query.clone()).await.expect("is solved");
    assert_eq!(solution.memory.query, query);
    let requests = model.requests();
    for part in ["data.csv: A CSV file", "b: the key", "knows nothing of today", "What is it?"] {
        assert!(requests[1].texts()[0].contains(part), "{part} in {}", requests[1].texts()[0]);
    }
    for request in &requests {
        let Message::User(message) = &request.messages[0] else { panic!("a user's message") };
        assert_eq!(message.parts()[1], image);
        assert!(request.tools.is_empty(), "roles plan calls, they do not make them");
    }
    assert_eq!(requests[4].texts()[0], "What is it?: 1");
}

#[tokio::test(start_paused = true)]
async fn each_query_has_a_directory_for_its_files() {
    struct Touch;
    #[async_trait]
    impl Tool for Touch {
        fn spec(&self) -> ToolSpec {
            ToolSpec::new("touch", "", json!({"type": "object"}))
        }

        async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
            let place = QueryCache::of(&req.cx)?.join("here");
            std::fs::write(&place, "x").expect("the directory is there");
            Ok(ToolOutput::text(place.display().to_string()))
        }
    }
    let root = tempfile::tempdir().expect("a directory");
    let course =
        || [analysis(), plan("touch"), command(&json!([{"arguments": {}}])), verdict(true), Turn::text("done")];
    let model = ScriptedModel::new(course().into_iter().chain(course()));
    let builder = Solver::builder(Models::all(model)).tool(Touch).cache_dir(root.path()).outputs([Output::Direct]);
    let solver = builder.build().expect("builds");
    let mut places = Vec::new();
    for _ in 0..2 {
        let solution = solver.solve("Why?").await.expect("is solved");
        places.push(solution.memory.actions[0].results[0].result.clone());
    }
    assert!(places[0] != places[1] && places.iter().all(|place| place.starts_with(&*root.path().to_string_lossy())));
}

// --- the audit record ---

#[tokio::test(start_paused = true)]
async fn the_record_and_the_traces_hold_every_question_and_answer() {
    let solution =
        solve(vec![analysis(), plan("Web_Search_Tool"), query("a"), verdict(true), Turn::text("done")]).await;
    let audit = solution.audit();
    for role in ["action_predictor", "tool_commander", "verifier"] {
        for what in ["prompt", "response"] {
            assert!(audit[format!("{role}_1_{what}")].is_string(), "{role} {what}");
        }
    }
    assert_eq!(audit["tool_result_1"], json!([r#"{"found":["a"]}"#]));
    assert_eq!((&audit["step_count"], &audit["direct_output"]), (&json!(1), &json!("done")));
    assert!(audit["query_analysis"].as_str().expect("text").contains("Required Skills: k"));
    let lines = solution.traces_json_lines(Some(1.0));
    let traces: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(traces.len(), 5);
    assert_eq!((&traces[1]["role"], &traces[1]["reward"]), (&json!("planner"), &json!(1.0)));
    assert!(traces[4]["prompt"].as_str().expect("text").contains("Web_Search_Tool"));
}

// --- one executor, one journal ---

#[tokio::test(start_paused = true)]
async fn the_calls_of_a_plan_can_be_approved_and_the_run_goes_on_from_its_checkpoint() {
    let ran = Arc::new(AtomicUsize::new(0));
    let build = |turns: Vec<Turn>| {
        let builder = Solver::builder(Models::all(ScriptedModel::new(turns))).tool(Search(ran.clone()));
        let builder = builder.outputs([Output::Direct]);
        builder.agent(|agent| agent.middleware(Approval::new().ask("Web_Search_Tool"))).build().expect("builds")
    };
    let asked = build(vec![analysis(), plan("Web_Search_Tool"), query("a")]).solve("Why?").await.expect_err("waits");
    assert_eq!((asked.kind(), ran.load(Ordering::SeqCst)), (ErrorKind::Interrupted, 0));
    let checkpoint = asked.checkpoint().expect("where it stands").clone();
    let question = checkpoint.questions[0].id.clone();
    let solver = build(vec![verdict(true), Turn::text("done")]);
    let resumed = RunRequest::resume(checkpoint, [(question, json!({"decision": "approve"}))]);
    let end = solver.agent().start(resumed).await.expect("runs").finished().expect("finishes");
    assert_eq!((end.answer.as_str(), ran.load(Ordering::SeqCst)), ("done", 1));
    assert_eq!(solver.solution(&end).expect("a solver's").step_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_the_user_says_meanwhile_is_told_to_the_roles() {
    let (solver, model) = solver(vec![
        analysis().delay(Duration::from_secs(1)),
        plan("Web_Search_Tool"),
        query("a"),
        verdict(true),
        Turn::text("done"),
    ]);
    let run = solver.agent().start(solver.request("Why?"));
    let handle = run.handle();
    let says = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        handle.steer(Message::user("Only in Switzerland.")).expect("is under way");
    };
    let end = tokio::join!(run, says).0.expect("runs").finished().expect("finishes");
    assert!(model.requests()[1].texts()[0].contains("Only in Switzerland."));
    assert_eq!(solver.solution(&end).expect("a solver's").memory.notes, ["Only in Switzerland."]);
}
