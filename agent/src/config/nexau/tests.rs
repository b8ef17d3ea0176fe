use serde_json::{Map, Value, json};

use super::{Difference, DifferenceKind::*, translate};

/// The smallest file, with these keys beside.
fn file(keys: Value) -> Value {
    let mut file = json!({"type": "agent", "name": "a", "llm_config": {
        "model": "gpt-5", "base_url": "https://llm.acme.example", "api_key": "${env.KEY}",
    }});
    if let Value::Object(keys) = keys {
        file.as_object_mut().expect("an object").extend(keys);
    }
    file
}

/// Translates the smallest file with these keys.
fn agent(keys: Value) -> (Value, Vec<Difference>) {
    translate(file(keys))
}

/// Translates these keys, without those of the smallest file.
fn parts(keys: Value) -> Value {
    let (agent, smallest) = (agent(keys).0, agent(json!({})).0);
    let fields = agent.as_object().expect("an object").clone().into_iter();
    fields.filter(|(key, value)| smallest.get(key) != Some(value)).collect::<Map<_, _>>().into()
}

/// Returns the pointers of the keys that cannot be translated.
fn impossible(keys: Value) -> Vec<String> {
    agent(keys).1.into_iter().filter(|difference| difference.kind == Impossible).map(|it| it.path).collect()
}

fn tool(name: &str, of: &str) -> Value {
    json!({"name": name, "yaml_path": "t.yaml", "binding": format!("nexau.archs.tool.builtin.{of}")})
}

fn middleware(class: &str, params: Value) -> Value {
    let mut entry = json!({"import": format!("nexau.archs.main_sub.execution.middleware.m:{class}")});
    entry["params"] = params;
    json!({"middlewares": [entry]})
}

#[test]
fn a_file_becomes_an_agent_file() {
    let (agent, differences) = agent(json!({
        "description": "Helps.",
        "variables": {"team": "ours"},
        "system_prompt": "Help {{ user }} of ${variables.team}.",
        "context": {"user": "Ada"},
        "max_iterations": 20,
        "tools": [tool("look", "file_tools:read_file"), {"name": "mail", "yaml_path": "mail.yaml", "binding": "acme.mail:send"}],
        "stop_tools": ["mail"],
        "sandbox_config": {"type": "local", "work_dir": "${this_file_dir}/work"},
        "skills": ["./skills/a", {"name": "b", "path": "./skills/b"}],
        "sub_agents": [{"name": "explore", "config_path": "./explore.yaml"}],
        "max_running_subagents": 2,
        "mcp_servers": [{"name": "fs", "type": "stdio", "command": "npx", "args": ["-y", "server"], "env": {"A": "b"}, "timeout": 30}],
        "retry_attempts": 3,
        "timeout": 600,
    }));
    assert_eq!(
        agent,
        json!({
            "name": "a", "description": "Helps.", "variables": {"team": "ours"},
            "model": {"name": "openai:gpt-5@chat", "base_url": "https://llm.acme.example", "api_key": "${env.KEY}", "retries": 2},
            "system_prompt": "Help {{ user }} of ${variables.team}.", "required_variables": "none",
            "inputs": {"user": {"schema": {}, "default": "Ada"}},
            "max_steps": 20, "exit_on": ["mail"], "deadlines": {"run": 600},
            "tools": [
                {"workspace": {"root": "./work", "tools": ["read_file"]}},
                "mail",
                {"mcp": {"name": "fs", "command": ["npx", "-y", "server"], "env": {"A": "b"}, "timeout": 30}},
                {"skills": ["./skills/a", "./skills/b"]},
            ],
            "sub_agents": {"explore": {
                "agent": "./explore.yaml",
                "nexau.description": "Performs the tasks of the sub-agent 'explore'.",
            }},
            "middleware": [{"delegation": {"tool": "Agent", "recall": true, "max_concurrent": 2}}],
        })
    );
    let places: Vec<_> = differences.iter().map(|it| (it.path.as_str(), it.kind)).collect();
    assert_eq!(
        places,
        [
            ("/tools/0/binding", Otherwise),
            ("/tools/1/binding", Impossible),
            ("/mcp_servers/0/name", Otherwise),
            ("/sub_agents", Otherwise),
            ("/max_iterations", Otherwise),
            ("/timeout", Otherwise),
        ]
    );
    assert!(differences[1].to_string().contains("give the registry a tool 'mail'"), "{}", differences[1]);
}

#[test]
fn every_key_that_nexau_has_does_something_or_is_told_of() {
    let hook = json!([{"import": "acme.hooks:watch", "params": {}}]);
    let keys = [
        ("description", json!("d")),
        ("system_prompt", json!("p")),
        ("system_prompt_suffix", json!("s")),
        ("tools", json!([tool("t", "file_tools:glob")])),
        ("sub_agents", json!([{"name": "b", "config_path": "b.yaml"}])),
        ("skills", json!(["s"])),
        ("stop_tools", json!(["t"])),
        ("initial_state", json!({"k": 1})),
        ("initial_config", json!({"k": 1})),
        ("initial_context", json!({"k": 1})),
        ("context", json!({"k": 1})),
        ("mcp_servers", json!([{"name": "s", "type": "http", "url": "https://a.example"}])),
        ("before_model_hooks", hook.clone()),
        ("after_model_hooks", hook.clone()),
        ("before_tool_hooks", hook.clone()),
        ("after_tool_hooks", hook.clone()),
        ("middlewares", hook),
        ("error_handler", json!("acme:handle")),
        ("token_counter", json!("acme:count")),
        ("global_storage", json!({"k": 1})),
        ("max_context_tokens", json!(1_000)),
        ("max_iterations", json!(5)),
        ("tool_call_mode", json!("xml")),
        ("retry_attempts", json!(2)),
        ("retry_backoff_max_seconds", json!(9)),
        ("timeout", json!(9)),
        ("tracers", json!(["acme:Tracer"])),
        ("sandbox_config", json!({"type": "e2b"})),
        ("plugins", json!([{"use": "path:./p"}])),
        ("variables", json!({"a": "b"})),
    ];
    let smallest = agent(json!({}));
    for (key, value) in keys {
        assert_ne!(agent(json!({key: value})), smallest, "{key}");
    }
    let alone = json!({"max_running_subagents": 2, "sub_agents": [{"name": "b", "config_path": "b.yaml"}]});
    assert_eq!(parts(alone)["middleware"][0]["delegation"]["max_concurrent"], 2);
    let prompt = json!({"system_prompt": "./p.md", "system_prompt_type": "file"});
    assert_eq!(parts(prompt)["system_prompt"], "${file../p.md}");
}

#[test]
fn a_key_that_nexau_does_not_have_is_told_of_at_every_depth() {
    let wrong = impossible(json!({
        "max_iteration": 5,
        "tools": [{"name": "t", "yaml_path": "t.yaml", "binding": "nexau.archs.tool.builtin:ask_user", "defer": true}],
        "sub_agents": [{"name": "b", "config_path": "b.yaml", "path": "x"}],
        "skills": [{"path": "s", "folder": "x"}],
        "mcp_servers": [{"name": "s", "command": "npx", "argv": []}],
        "middlewares": [{"import": "nexau.archs.main_sub.x:LongToolOutputMiddleware", "params": {"max_chars": 5}, "param": {}}],
        "system_prompt": [{"content": "c", "cached": true}],
    }));
    let all = [
        "/max_iteration",
        "/tools/0/defer",
        "/sub_agents/0/path",
        "/skills/0/folder",
        "/mcp_servers/0/argv",
        "/middlewares/0/params/max_chars",
        "/middlewares/0/param",
        "/system_prompt/0/cached",
    ];
    for path in all {
        assert!(wrong.iter().any(|known| known == path), "{path} of {wrong:?}");
    }
    assert_eq!(wrong.len(), all.len());
}

#[test]
fn the_model_is_named_by_its_provider_and_its_wire_and_asked_as_before() {
    let of = |llm: Value| translate(json!({"name": "a", "llm_config": llm})).0;
    for (api_type, name) in [
        ("openai_chat_completion", "openai:m@chat"),
        ("openai_responses", "openai:m@responses"),
        ("anthropic_chat_completion", "anthropic:m@messages"),
        ("gemini_rest", "gemini:m@generate"),
    ] {
        assert_eq!(of(json!({"model": "m", "api_type": api_type}))["model"], name);
    }
    let asked = of(json!({
        "model": "m", "temperature": 0.5, "top_p": 0.9, "max_tokens": 100, "frequency_penalty": 0.1, "stream": true,
        "stream_idle_timeout_ms": 1500, "reasoning": {"effort": "low"}, "additional_drop_params": ["top_p"],
    }));
    assert_eq!(asked["params"]["extra"], json!({"frequency_penalty": 0.1, "reasoning": {"effort": "low"}}));
    assert_eq!((&asked["params"]["max_tokens"], asked["params"].get("top_p")), (&json!(100), None));
    assert_eq!((&asked["streaming"], &asked["deadlines"]["chunk_gap"]), (&json!(true), &json!(1.5)));
    let gemini = of(
        json!({"model": "m", "api_type": "gemini_rest", "thinkingConfig": {"thinkingBudget": 5}, "thinking_budget": 7}),
    );
    assert_eq!(gemini["params"]["extra"]["generationConfig"]["thinkingConfig"]["thinkingBudget"], 5);
    assert_eq!(gemini["params"]["thinking_tokens"], 7);
    let claude = of(json!({"model": "m", "api_type": "anthropic_chat_completion", "cache_control_ttl": "1h"}));
    assert_eq!(claude["middleware"], json!([{"prompt_caching": {"keep": "long"}}]));
    let training = translate(json!({"name": "a", "llm_config": {"model": "m", "api_type": "generate_with_token"}})).1;
    assert!(training.iter().any(|it| it.path == "/llm_config/api_type" && it.kind == Impossible));
}

#[test]
fn xml_is_a_matter_of_the_model_and_structured_is_not() {
    assert_eq!(parts(json!({"tool_call_mode": "xml"}))["model"]["xml_tools"], true);
    for mode in ["structured", "openai", "anthropic"] {
        assert_eq!(parts(json!({"tool_call_mode": mode})), json!({}));
    }
    assert_eq!(impossible(json!({"tool_call_mode": "soap"})), ["/tool_call_mode"]);
}

#[test]
fn a_prompt_is_a_text_a_file_or_several() {
    let prompt = |keys| parts(keys)["system_prompt"].clone();
    assert_eq!(
        prompt(json!({"system_prompt": ["a", {"content": "b", "cache": false}], "system_prompt_suffix": "!"})),
        "a\n\nb!"
    );
    let files = json!({"system_prompt": ["a.md", "b.md"], "system_prompt_type": "jinja"});
    assert_eq!(prompt(files), "${file.a.md}\n\n${file.b.md}");
    let told = |keys| agent(keys).1.iter().any(|it| it.path == "/system_prompt");
    assert!(told(json!({"system_prompt": "Date: {{date}}"})), "a run is to be given it");
    assert!(told(json!({"system_prompt": "./prompt.md"})), "a path that was not meant to be a text");
    assert!(!told(json!({"system_prompt": "Up to date {{ user }}"})));
}

#[test]
fn what_ends_a_run_is_called_as_it_is_here() {
    let tools = json!([tool("complete_task", "session_tools:complete_task"), tool("web_read", "web_tools:web_fetch")]);
    let ends = parts(json!({"tools": tools, "stop_tools": ["complete_task", "web_read", "own"]}));
    let (exit_on, tools) = (json!(["finish", "web_fetch"]), json!(["finish", "web_fetch"]));
    assert_eq!((&ends["exit_on"], &ends["tools"]), (&exit_on, &tools));
}

#[test]
fn conversations_are_compacted_by_the_same_rule() {
    let compaction = |params| {
        let parts = parts(middleware("ContextCompactionMiddleware", params));
        parts["middleware"][0]["context_compaction"].clone()
    };
    assert_eq!(
        compaction(
            json!({"max_context_tokens": 1000, "threshold": 0.8, "keep_iterations": 2, "compactable_tools": ["Read"]})
        ),
        json!({"max_tokens": 1000, "trigger": {"fraction": 0.8}, "strategy": {"clear_tool_results": {
            "keep": {"iterations": 2}, "only": ["Read"], "placeholder": "Tool call result has been compacted",
        }}})
    );
    let summary =
        compaction(json!({"compaction_strategy": "llm_summary", "keep_user_rounds": 1, "compact_prompt_path": "c.md"}));
    assert_eq!(summary["strategy"], json!({"summary": {"keep": {"user_rounds": 1}, "prompt": "${file.c.md}"}}));
    assert_eq!(
        compaction(json!({"trigger": "time_based", "gap_threshold_minutes": 2}))["trigger"],
        json!({"gap": 120.0})
    );
    assert_eq!(compaction(json!({"auto_compact": false, "threshold": 0.5}))["trigger"], "never");
    assert_eq!(compaction(json!({"window_size": 2}))["strategy"], json!({"sliding_window": {"window_size": 2}}));
    let mut inherits = middleware("ContextCompactionMiddleware", json!({}));
    inherits["max_context_tokens"] = 5.into();
    assert_eq!(parts(inherits)["middleware"][0]["context_compaction"]["max_tokens"], 5);
}

#[test]
fn a_model_that_fails_has_the_same_ones_after_it() {
    let params = json!({"fallback_providers": [
        {"name": "b", "llm_config": {"model": "b", "api_type": "anthropic_chat_completion", "temperature": 1}},
    ]});
    let (agent, differences) = agent(middleware("LLMFailoverMiddleware", params));
    let fallback =
        json!({"name": "anthropic:b@messages", "base_url": "https://llm.acme.example", "api_key": "${env.KEY}"});
    assert_eq!(agent["model"]["fallbacks"], json!([fallback]), "what it does not say is as of the first");
    assert!(differences.iter().any(|it| it.path.ends_with("/fallback_providers/0/llm_config/temperature")));
}

#[test]
fn a_middleware_in_python_is_one_of_the_registry() {
    let hooks = json!({"middlewares": [{"import": "./own.py:HTTPCacheMiddleware", "params": {"size": 5}}], "after_tool_hooks": ["acme:watch"]});
    assert_eq!(parts(hooks.clone())["middleware"], json!([{"http_cache": {"size": 5}}, "watch"]));
    assert_eq!(impossible(hooks), ["/middlewares/0/import", "/after_tool_hooks/0/import"]);
}

#[test]
fn a_tool_file_is_what_a_model_is_told_of_the_tool() {
    let schema = json!({"type": "object", "properties": {"to": {"type": "string"}}});
    let (tool, differences) = translate(json!({
        "type": "tool", "name": "mail", "description": "Sends.", "input_schema": schema, "binding": "acme:send",
        "disable_parallel": true, "wrong": 1,
    }));
    assert_eq!(tool, json!({"name": "mail", "description": "Sends.", "parameters": schema}));
    let places: Vec<_> = differences.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(places, ["/disable_parallel", "/binding", "/wrong"]);
}

#[test]
fn nothing_secret_is_said_of_what_cannot_be_read() {
    let secret = "hush-hush";
    let (_, differences) = agent(json!({
        "llm_config": {"model": "m", "api_key": [secret], "base_url": {"a": secret}},
        "mcp_servers": [{"name": "s", "url": secret, "headers": secret, "env": {"K": secret}, "tokens": secret}],
        "sandbox_config": {"type": "e2b", "api_key": secret, "envs": {"K": secret}},
        "tools": [secret], "global_storage": secret, "variables": secret, "skills": [[secret]], "unknown": secret,
    }));
    assert!(differences.len() > 8);
    for difference in differences {
        assert!(!difference.to_string().contains(secret), "{difference}");
    }
}

#[test]
fn whatever_stands_in_a_file_is_translated_or_told_of_and_nothing_panics() {
    let whole = json!({
        "llm_config": {"model": "m", "api_type": "gemini_rest", "thinkingConfig": {}, "generationConfig": {}, "include_thoughts": true},
        "tools": [{"name": "t", "yaml_path": "t", "binding": "nexau.archs.tool.builtin:replace", "permissions": {"allow": ["a"], "deny": ["**"]}}],
        "mcp_servers": [{"name": "s", "permissions": {"allow": ["mcp__s"]}, "tool_permissions": {"x": null, "y": {"deny": ["z"]}}}],
        "sub_agents": [{"name": "b", "config_path": "c"}],
        "middlewares": [{"import": "nexau.archs.main_sub.x:ContextCompactionMiddleware", "params": {"compactable_tools": ["x"]}},
            {"import": "nexau.archs.main_sub.x:LLMFailoverMiddleware", "params": {"fallback_providers": [{"llm_config": {}}]}}],
        "system_prompt": [{"content": "x"}], "context": {"k": 1}, "initial_state": {"k": 1}, "sandbox_config": {}, "plugins": [{}],
    });
    let mut tried = 0;
    change(&whole, &mut |changed| {
        translate(changed);
        tried += 1;
    });
    assert!(tried > 400, "{tried}");
}

/// Tries all that is one change away from a value.
fn change(value: &Value, try_it: &mut dyn FnMut(Value)) {
    for other in [json!(null), json!(true), json!("x"), json!(-1), json!([]), json!([[]]), json!({}), json!({"x": "y"})]
    {
        try_it(other);
    }
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                change(field, &mut |changed| {
                    let mut fields = fields.clone();
                    fields.insert(key.clone(), changed);
                    try_it(fields.into());
                });
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                change(item, &mut |changed| {
                    let mut items = items.clone();
                    items[at] = changed;
                    try_it(items.into());
                });
            }
        }
        _ => {}
    }
}
