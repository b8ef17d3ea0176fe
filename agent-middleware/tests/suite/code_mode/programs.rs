//! Inputs and results of programs.

use agent_core::testing::Turn;
use serde_json::json;

use super::world::{Outside, builder, code_mode, finished, program, result_of, result_with};

#[tokio::test]
async fn what_is_printed_and_the_last_value_are_the_result() {
    for (code, wanted) in [
        ("print('a', 1)\nprint('b')", "a 1\nb\n"),
        ("print('a')\n1 + 1", "a\n2"),
        ("print('a', end='')\n[1, 'x']", "a\n[1, 'x']"),
        ("'text'", "text"),
        (
            "prices = {'tea': 3, 'bread': 5}\nprint('dearest:', max(prices, key=lambda item: prices[item]))\nsum(prices.values())",
            "dearest: bread\n8",
        ),
        ("x = 1", "[The program ended and printed nothing.]"),
        ("", "[The program ended and printed nothing.]"),
        ("import json\njson.dumps({'a': None})", "{\"a\": null}"),
    ] {
        assert_eq!(result_of(code).await, (wanted.to_owned(), vec![]), "{code}");
    }
}

#[tokio::test]
async fn calls_are_made_one_by_one_or_at_once_and_have_their_results() {
    let one_by_one = "total = 0\nfor n in range(3):\n    total = add(total, n)\ntotal";
    let (text, done) = result_of(one_by_one).await;
    assert_eq!(text, "3");
    assert_eq!(done, ["p.1: add {\"a\":0,\"b\":0}", "p.2: add {\"a\":0,\"b\":1}", "p.3: add {\"a\":1,\"b\":2}"]);
    let at_once = "import asyncio\nr = await asyncio.gather(add(1, b=2), say('x'), add(a=3, b=4))\nprint(r)\nawait add(r[0], r[2])";
    let (text, done) = result_of(at_once).await;
    assert_eq!(text, "[3, 'x', 7]\n10");
    assert_eq!(done.len(), 4);
    let in_main = "import asyncio\nasync def main():\n    return f'<{await say(\"a\")}>'\nasyncio.run(main())";
    assert_eq!(result_of(in_main).await.0, "<a>");
}

#[tokio::test]
async fn a_program_has_the_value_of_a_tool_or_its_text() {
    let code = "item('x')['content'] + item(name='y')['returnDisplay']['for'] + say('[1]') + str(add(1, 1) + 1)";
    assert_eq!(result_of(code).await.0, "xpeople[1]3");
}

#[tokio::test]
async fn a_call_that_failed_raises_what_the_model_would_be_told() {
    let caught = "try:\n    fail('tea')\nexcept RuntimeError as e:\n    print('caught', e)\nawait_ = say('b')\nawait_";
    assert_eq!(result_of(caught).await.0, "caught There is no tea.\nb");
    let (text, done) = result_of("x = 1\nawait fail('tea')").await;
    assert!(
        text.starts_with("Traceback")
            && text.contains("line 2")
            && text.ends_with("RuntimeError: There is no tea.\n[It had called fail.]"),
        "{text}"
    );
    assert_eq!(done.len(), 1);
    let refused = result_of("x = 'x'\nadd(x, 1)").await;
    assert!(refused.0.contains("RuntimeError") && refused.1.is_empty(), "{refused:?}");
}

#[tokio::test]
async fn wrong_calls_and_wrong_programs_are_errors_that_cost_no_call() {
    for (code, wanted) in [
        ("x = (1", "SyntaxError"),
        ("add(1)", "TypeError: add() missing a required argument: 'b'"),
        ("add(1, 2, 3)", "TypeError: add() takes 2 positional arguments but 3 were given"),
        ("say(nom='x')", "TypeError: say() got an unexpected keyword argument 'nom': it has (name)"),
        ("say(print)", "which is not JSON"),
        ("subtract(1, 2)", "NameError: name 'subtract' is not defined"),
        ("import requests", "ModuleNotFoundError"),
        ("1 / 0", "ZeroDivisionError"),
    ] {
        let (text, done) = result_of(code).await;
        assert!(text.contains(wanted) && done.is_empty(), "{code}: {text}");
    }
}

#[tokio::test]
async fn the_model_is_offered_programs_and_what_they_do_not_call() {
    let outside = Outside::default();
    let (agent, model) = builder([Turn::text("so")], &outside);
    let mode = code_mode().tools("a*").tools("say").except("ask").tool_name("python");
    finished(agent.middleware(mode).build().expect("builds").run("go").await);
    assert_eq!(model.requests()[0].tools, ["item", "fail", "ask", "python"]);
    // Hidden tools can still be called.
    let (agent, model) = builder([Turn::call("c", "say", json!({"name": "x"})), Turn::text("so")], &outside);
    finished(agent.middleware(code_mode()).build().expect("builds").run("go").await);
    assert_eq!(model.requests()[1].results(), [("c".into(), "x".into())]);
}

#[tokio::test]
async fn the_tool_tells_of_the_functions_in_an_order_of_their_own() {
    use std::sync::{Arc, Mutex};

    let told = Arc::new(Mutex::new(String::new()));
    let seen = told.clone();
    let looks = agent_middleware::before_model_fn("looks", move |_, req| {
        let tool = req.tools.iter().find(|tool| tool.name == "run_code").expect("is offered");
        seen.lock().expect("lock").clone_from(&tool.description);
        Ok(agent_core::Flow::Continue)
    });
    let (agent, _) = builder([Turn::text("so")], &Outside::default());
    finished(
        agent
            .middleware(agent_middleware::CodeMode::new().calls(7))
            .middleware(looks)
            .build()
            .expect("builds")
            .run("go")
            .await,
    );
    let told = told.lock().expect("lock").clone();
    let stubs: Vec<_> = told.lines().filter(|line| line.starts_with("async def")).collect();
    let wanted = ["add(a: int, b: int)", "ask(name: str)", "fail(name: str)", "item(name: str)", "say(name: str)"];
    assert_eq!(stubs, wanted.map(|stub| format!("async def {stub} -> Any:")));
    assert!(told.contains("make 7 calls") && told.contains("for 1 seconds"), "{told}");
}

#[tokio::test]
async fn a_program_may_call_and_say_so_much() {
    let (text, done) = result_with("for n in range(9):\n    print(n)\n    add(n, n)", code_mode().calls(2)).await;
    assert_eq!(
        text,
        "0\n1\n2\nRuntimeError: a program may call tools 2 times, and this one wants more\n[It had called add, add.]"
    );
    assert_eq!(done.len(), 2);
    let endless = "calls = []\nwhile True:\n    calls.append(add(1, 1))\nawait calls[0]";
    let (text, done) = result_with(endless, code_mode().calls(5)).await;
    assert!(text.contains("may call tools 5 times") && done.is_empty(), "{text}");
    let (text, _) = result_with("print('x' * 1000)\n'y' * 10", code_mode().output(100)).await;
    assert_eq!(text, format!("{}\n[911 bytes left out]\nyyyyyyyyyy", "x".repeat(90)));
}

#[tokio::test]
async fn calls_that_are_never_awaited_are_not_made_and_the_model_is_told() {
    // A call that was started is made together with the next awaited one.
    let (text, done) = result_of("add(1, 2)\nr = await say('x')\nr").await;
    assert_eq!(text, "x");
    assert_eq!(done, ["p.1: add {\"a\":1,\"b\":2}", "p.2: say {\"name\":\"x\"}"]);
    let (text, done) = result_of("import asyncio\nadd(1, 2)\n1").await;
    assert_eq!((text.as_str(), done.len()), ("1\n[1 calls were never awaited, so they were not made]", 0));
}

#[tokio::test]
async fn a_program_without_arguments_or_with_broken_ones_is_refused_as_a_call() {
    for arguments in [json!({}), json!({"code": 5}), json!({"source": "1"})] {
        let (agent, model) = builder([Turn::call("p", "run_code", arguments), Turn::text("so")], &Outside::default());
        finished(agent.middleware(code_mode()).build().expect("builds").run("go").await);
        let results = model.requests()[1].results();
        assert!(results[0].1.contains("code") || results[0].1 == "5", "{results:?}");
    }
    let (agent, model) = builder([program("p", "1"), program("p", "2"), Turn::text("so")], &Outside::default());
    let end = finished(agent.middleware(code_mode()).build().expect("builds").run("go").await);
    assert_eq!(model.requests()[2].results().last(), Some(&("p".into(), "2".into())), "the id is the same");
    assert_eq!(end.tool_calls["run_code"], 2);
}
