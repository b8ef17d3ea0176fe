//! Programs of runs whose process died: they resume in the middle, and no completed call is
//! repeated.

use std::collections::BTreeSet;

use agent_core::{
    Finished, Journal, MemoryJournal, RunRequest,
    journal::EntryBody,
    testing::{MortalJournal, ScriptedModel, Turn},
};
use agent_exec::Agent;
use serde_json::json;

use super::world::{Outside, code_mode, finished, program, said, with_tools};

const SESSION: &str = "s";

/// Generates a random program.
fn generated(seed: u64) -> String {
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = move |most: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % most
    };
    let is_async = seed.is_multiple_of(2);
    let wait = if is_async { "await " } else { "" };
    let mut code = String::from("import json\nx = 1\n");
    if is_async {
        code.push_str("import asyncio\n");
    }
    for n in 0..=next(3) {
        let line = match next(if is_async { 7 } else { 5 }) {
            0 => format!("x = {wait}add(x, {n})\n"),
            1 => format!("for i in range(2):\n    x += {wait}add(i, x)\n"),
            2 => format!("try:\n    {wait}fail(str(x))\nexcept RuntimeError as e:\n    print(e)\n"),
            3 => format!("if x % 2:\n    print({wait}say(str(x)))\nelse:\n    x = {wait}add(x, 1)\n"),
            4 => format!("print(json.dumps({wait}item('n{n}')))\n"),
            5 => "print(await asyncio.gather(*[add(x, i) for i in range(3)]))\n".into(),
            _ => "async def f(n):\n    return await add(n, await add(n, n))\nprint(await asyncio.gather(f(1), f(x)))\n"
                .into(),
        };
        code.push_str(&line);
    }
    code + "x"
}

/// Returns the responses of a model that writes programs, case by case.
fn cases() -> Vec<Vec<Turn>> {
    let one = |code: &str| vec![program("p", code), Turn::text("so")];
    let two_turns = vec![
        program("p", "x = add(1, 2)\nprint(x)\nitem('tea')"),
        program("q", "import asyncio\nprint(await asyncio.gather(*[add(n, n) for n in range(3)]))\nawait say('end')"),
        Turn::text("so"),
    ];
    let same_id = vec![program("p", "say(say('a'))"), program("p", "say(say('a'))"), Turn::text("so")];
    let beside = vec![
        Turn::calls([
            ("a", "say", json!({"name": "own"})),
            ("p", "run_code", json!({"code": "say('x') + say('y')"})),
            ("q", "run_code", json!({"code": "1 + 1"})),
            ("r", "run_code", json!({"code": "print(await say('z'))\nawait add(1, 1)"})),
            ("s", "run_code", json!({"code": "syntax error"})),
        ])
        .and_text("I look."),
        Turn::text("so"),
    ];
    let mut cases = vec![
        one("1 + 1"),
        one("for n in range(4):\n    print(add(n, 1))"),
        one("def f(n):\n    return say('x') if n == 0 else f(n - 1) + say(str(n))\nf(3)"),
        one("try:\n    fail('x')\nexcept RuntimeError as e:\n    print(e)\nitem('y')['returnDisplay']"),
        one("fail('x')\nsay('never')"),
        one("import asyncio\na, b = await asyncio.gather(say('a'), fail('b'))"),
        one("names = {'b': 1, 'a': 2}\nfor n in sorted(names):\n    say(n)\n{say(n) for n in names}"),
        two_turns,
        same_id,
        beside,
    ];
    // CI tries fifty in all, with PROGRAMS=40: they take a minute.
    let more = std::env::var("PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(6);
    cases.extend((0..more).map(|seed| one(&generated(seed))));
    cases
}

/// Returns the number of model responses in a journal.
async fn answers(journal: &MemoryJournal) -> usize {
    let entries = journal.read(SESSION, 0, usize::MAX).await.expect("reads");
    entries.iter().filter(|entry| matches!(entry.body, EntryBody::ModelFinished { .. })).count()
}

async fn agent(case: usize, store: &MortalJournal, below: &MemoryJournal, outside: &Outside) -> Agent {
    let turns = cases().swap_remove(case).into_iter().skip(answers(below).await);
    let builder = with_tools(Agent::builder("a", ScriptedModel::new(turns)), outside);
    builder.middleware(code_mode()).store(store.clone()).build().expect("builds")
}

async fn whole(case: usize) -> (Finished, Vec<String>, u64) {
    let (journal, outside) = (MemoryJournal::default(), Outside::default());
    let agent = agent(case, &MortalJournal::new(journal.clone()), &journal, &outside).await;
    let end = finished(agent.start(RunRequest::user("go").session(SESSION)).await);
    let entries = journal.read(SESSION, 0, usize::MAX).await.expect("reads").len();
    (end, outside.done(), entries as u64)
}

/// Returns the calls that have an end in a journal.
async fn ended(journal: &MemoryJournal) -> Vec<String> {
    let entries = journal.read(SESSION, 0, usize::MAX).await.expect("reads");
    let ended = entries.iter().filter_map(|entry| match &entry.body {
        EntryBody::ToolFinished { call_id, .. } | EntryBody::ToolAnswered { call_id, .. } => Some(call_id.to_string()),
        _ => None,
    });
    ended.collect()
}

#[tokio::test]
async fn a_run_that_died_at_any_entry_gives_what_one_gives_that_did_not_and_makes_no_call_again() {
    let mut deaths = 0;
    for case in 0..cases().len() {
        let (whole, done, entries) = whole(case).await;
        for dies_at in 1..=entries {
            let about = format!("case {case} died at {dies_at} of {entries}");
            let (journal, before) = (MemoryJournal::default(), Outside::default());
            let mortal = MortalJournal::new(journal.clone()).dying_at(dies_at);
            let run = agent(case, &mortal, &journal, &before).await.start(RunRequest::user("go").session(SESSION));
            tokio::select! {
                biased;
                () = mortal.died() => {}
                end = run => panic!("{about}: it lived: {end:?}"),
            }
            // its aborted tasks are gone
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            let known = ended(&journal).await;
            let request = match journal.sessions().await.expect("reads").is_empty() {
                true => RunRequest::user("go").session(SESSION),
                false => RunRequest::recover(SESSION, []),
            };
            let after = Outside::default();
            let lives = MortalJournal::new(journal.clone());
            let end = finished(agent(case, &lives, &journal, &after).await.start(request).await);
            assert_eq!(said(end.history.iter()), said(whole.history.iter()), "{about}");
            assert_eq!(
                (&end.answer, end.steps, &end.tool_calls),
                (&whole.answer, whole.steps, &whole.tool_calls),
                "{about}"
            );
            // Ids are unique within a run, except in the case that uses one twice.
            let again = |line: &&String| known.iter().any(|id| line.starts_with(&format!("{id}:")));
            let again: Vec<_> = after.done().iter().filter(again).cloned().collect();
            assert!(again.is_empty() || case == 8, "{about}: {again:?} were done again");
            let all: BTreeSet<_> = before.done().into_iter().chain(after.done()).collect();
            assert_eq!(all, done.iter().cloned().collect(), "{about}");
            assert!(
                before.done().len() + after.done().len() <= done.len() + 4,
                "{about}: at most one batch was in doubt"
            );
            deaths += 1;
        }
    }
    assert!(deaths > 200, "{deaths}");
}

#[tokio::test]
async fn the_conversation_of_a_program_is_one_call_and_its_result() {
    let (end, done, _) = whole(9).await;
    let wanted = [
        "user: go",
        "calls say(a) run_code(p) run_code(q) run_code(r) run_code(s)",
        "a: own",
        "p: xy",
        "q: 2",
        "r: z\n2",
    ];
    let said = said(end.history.iter());
    assert_eq!(said[..6], wanted);
    assert!(said[6].starts_with("s!: ") && said[6].contains("SyntaxError"), "{}", said[6]);
    assert_eq!(said[7..], ["assistant: so"]);
    let ids: BTreeSet<_> = done.iter().filter_map(|line| Some(line.split_once(':')?.0)).collect();
    assert_eq!(ids, BTreeSet::from(["a", "p.1", "p.2", "r.1", "r.2"]));
    assert_eq!(
        end.steps, 4,
        "the programs begin in the first, the first calls are made at once, and so are the second"
    );
}
