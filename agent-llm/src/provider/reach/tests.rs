use secrecy::ExposeSecret;
use serde_json::json;

use super::*;

/// Environment variables.
type Vars = &'static [(&'static str, &'static str)];

fn reach_with(name: &str, vars: Vars, change: impl FnOnce(&mut Wanted)) -> Result<Reach> {
    let read = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
    let mut wanted = Wanted { env: Box::new(read), ..Wanted::default() };
    change(&mut wanted);
    Reach::by_name(&Providers::builtin(), name, &wanted, &HttpSettings::default())
}

fn reach(name: &str, vars: Vars) -> Result<Reach> {
    reach_with(name, vars, |_| {})
}

/// Returns the provider, the URL and the key.
fn found(reach: Result<Reach>) -> (String, String, Option<String>) {
    let reach = reach.expect("all is there");
    let url = match &reach.speaks {
        WireSupport::Chat(profile) | WireSupport::Responses(profile) => profile.base_url.clone(),
        WireSupport::Messages(profile) => profile.base_url.clone(),
        WireSupport::Generate(profile) => profile.base_url.clone(),
        WireSupport::Cohere(profile) => profile.base_url.clone(),
        WireSupport::Converse(profile) => profile.base_url.clone(),
        WireSupport::Ollama(profile) => profile.base_url.clone(),
    };
    (reach.provider.name, url, reach.key.map(|key| key.expose_secret().to_owned()))
}

fn refused(reach: Result<Reach>) -> String {
    reach.err().expect("something is missing").message().to_owned()
}

const OPENAI: (&str, &str) = ("OPENAI_API_KEY", "of OpenAI");

#[test]
fn every_provider_is_reached_on_each_of_its_wires_when_all_is_set() {
    for provider in Providers::builtin().iter() {
        for wire in &provider.wires {
            let name = format!("{}:m@{wire}", provider.name);
            let wanted = Wanted { env: Box::new(|_| Some("x".to_owned())), ..Wanted::default() };
            let reach =
                Reach::<WireSupport>::at(provider.clone(), &format!("m@{wire}"), &wanted, &HttpSettings::default());
            let reach = reach.expect(&name);
            assert_eq!((reach.provider.name.as_str(), reach.model.as_str()), (provider.name.as_str(), "m"));
            reach.speaks.codec(reach.model, None, None).expect(&name);
        }
    }
}

#[test]
fn what_is_missing_is_said_at_once_with_what_to_set() {
    assert_eq!(
        refused(reach("openai:gpt-5", &[])),
        "openai:gpt-5 lacks a key of openai (set OPENAI_API_KEY, or use api_key(..))"
    );
    let snowflake = refused(reach("snowflake:m", &[]));
    for word in ["SNOWFLAKE_TOKEN", "SNOWFLAKE_ACCOUNT", "option(\"account\", ..)"] {
        assert!(snowflake.contains(word), "{snowflake}");
    }
    let gemini = refused(reach("gemini:m", &[("GEMINI_API_KEY", " ")]));
    assert!(gemini.contains("GEMINI_API_KEY or GOOGLE_API_KEY"), "{gemini}");
    assert!(reach("ollama:qwen3:8b", &[]).is_ok_and(|reach| reach.model == "qwen3:8b"));
}

#[test]
fn a_name_that_is_none_is_refused_with_what_was_perhaps_meant() {
    assert!(refused(reach("gpt-5", &[])).contains("did you mean openai:gpt-5?"));
    assert!(refused(reach("antropic:m", &[])).contains("did you mean anthropic?"));
    assert!(refused(reach("nobody:m", &[])).contains("there are openai, "));
    assert!(refused(reach("openai:", &[OPENAI])).contains("openai:model"));
    assert_eq!(refused(reach("mistral:m@messages", &[])), "mistral speaks chat, and nothing else");
}

#[test]
fn an_at_sign_chooses_the_wire_and_other_ones_are_of_the_models_name() {
    let wire = |name: &str| match reach(name, &[OPENAI, ("CLOUDFLARE_API_TOKEN", "k"), ("CLOUDFLARE_ACCOUNT_ID", "a")])
    {
        Ok(Reach { speaks: WireSupport::Responses(_), model, .. }) => ("responses", model),
        Ok(reach) => ("another", reach.model),
        Err(e) => panic!("{e}"),
    };
    assert_eq!(wire("openai:gpt-5@responses"), ("responses", "gpt-5".into()));
    assert_eq!(wire("openai:gpt-5"), ("another", "gpt-5".into()));
    assert_eq!(wire("cloudflare:@cf/meta/llama-4"), ("another", "@cf/meta/llama-4".into()));
}

#[test]
fn a_key_from_the_environment_goes_to_its_own_server_alone() {
    const GROQ: (&str, &str) = ("GROQ_API_KEY", "of Groq");
    const AT_GROQ: (&str, &str) = ("OPENAI_BASE_URL", "https://api.groq.com/openai/v1");
    let (name, _, key) = found(reach("openai:m", &[AT_GROQ, OPENAI, GROQ]));
    assert_eq!((name.as_str(), key.as_deref()), ("groq", Some("of Groq")));
    let error = refused(reach("openai:m", &[AT_GROQ, OPENAI]));
    assert!(error.contains("set GROQ_API_KEY") && !error.contains("OPENAI"), "{error}");
    let (_, _, key) = found(reach("openai:m", &[OPENAI, GROQ]));
    assert_eq!(key.as_deref(), Some("of OpenAI"));

    let at = |url: &str| {
        let url = url.to_owned();
        found(reach_with("openai:m", &[OPENAI], |wanted| wanted.base_url = Some(url)))
    };
    assert_eq!(at("http://10.0.0.7:9000/v1"), ("10.0.0.7".into(), "http://10.0.0.7:9000/v1".into(), None));
    assert_eq!(at("https://api.openai.com/v2").2.as_deref(), Some("of OpenAI"));
    assert_eq!(at("https://evil.test#.openai.azure.com/").2, None);
    let elsewhere = reach_with("azure:m", &[("AZURE_OPENAI_API_KEY", "of Azure")], |wanted| {
        wanted.base_url = Some("https://openrouter.ai/api/v1".into());
    });
    assert!(refused(elsewhere).contains("OPENROUTER_API_KEY"));
}

#[test]
fn another_address_keeps_the_dialect_of_the_provider_that_was_named() {
    for (name, field, own) in
        [("openai:gpt-5", "max_tokens", "max_completion_tokens"), ("mistral:m", "seed", "random_seed")]
    {
        let url = "https://gateway.test/v1".to_owned();
        let reach = reach_with(name, &[], |wanted| wanted.base_url = Some(url)).expect("reached");
        let WireSupport::Chat(profile) = &reach.speaks else { panic!("{name} speaks another wire") };
        assert_eq!((profile.name_of(field), &*profile.provider), (Some(own), "gateway.test"), "{name}");
        assert!(reach.key.is_none(), "{name}: its key is not for another host");
    }
}

#[test]
fn a_key_with_a_line_break_at_its_end_is_cut_and_one_within_names_the_variable() {
    let (_, _, key) = found(reach("openai:m", &[("OPENAI_API_KEY", "sk-abc\r\n")]));
    assert_eq!(key.as_deref(), Some("sk-abc"));
    let why = refused(reach("openai:m", &[("OPENAI_API_KEY", "sk-a\nbc")]));
    assert!(why.contains("OPENAI_API_KEY") && !why.contains("sk-a"), "{why}");
}

#[test]
fn the_two_variables_of_a_provider_are_a_pair_as_with_its_own_clients() {
    let (name, url, key) = found(reach("openai:m", &[("OPENAI_BASE_URL", "http://10.0.0.7:9000/v1"), OPENAI]));
    assert_eq!(
        (name.as_str(), url.as_str(), key.as_deref()),
        ("10.0.0.7", "http://10.0.0.7:9000/v1", Some("of OpenAI"))
    );
    assert_eq!(found(reach("openai:m", &[("OPENAI_BASE_URL", "http://localhost:11434/v1")])).0, "ollama");
    let bare = found(reach("gemini:m", &[("GOOGLE_GEMINI_BASE_URL", "http://proxy.test:4000/")]));
    assert_eq!((bare.0.as_str(), bare.1.as_str(), bare.2), ("proxy.test", "http://proxy.test:4000/v1beta", None));
    let whole = found(reach("gemini:m", &[("GOOGLE_GEMINI_BASE_URL", "http://proxy.test/gemini/v1")]));
    assert_eq!(whole.1, "http://proxy.test/gemini/v1");
}

#[test]
fn a_token_may_be_shown_otherwise_than_a_key() {
    let auth = |vars| reach("anthropic:m", vars).expect("all is there").auth;
    assert_eq!(auth(&[("ANTHROPIC_AUTH_TOKEN", "a-token")]), Auth::Bearer);
    let both = &[("ANTHROPIC_AUTH_TOKEN", "a-token"), ("ANTHROPIC_API_KEY", "a-key")];
    assert_eq!(auth(both), Auth::Header("x-api-key".into()));
}

#[test]
fn a_place_is_filled_from_the_code_the_environment_or_by_default_and_cannot_move_the_server() {
    const VERTEX: Vars = &[("GOOGLE_OAUTH_ACCESS_TOKEN", "t"), ("GOOGLE_CLOUD_PROJECT", "p")];
    let global = "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google";
    assert_eq!(found(reach("vertex:m", VERTEX)).1, global);
    let set = |location: serde_json::Value| {
        reach_with("vertex:m", VERTEX, |wanted| wanted.options.push(("location".into(), location)))
    };
    assert!(found(set(json!("europe-west4"))).1.starts_with("https://europe-west4-aiplatform.googleapis.com/"));
    const AZURE: Vars = &[("AZURE_OPENAI_API_KEY", "k"), ("AZURE_OPENAI_RESOURCE", "global-acme")];
    assert_eq!(found(reach("azure:m", AZURE)).1, "https://global-acme.openai.azure.com/openai/v1");
    for evil in [json!("evil.test/"), json!("evil.test?"), json!("a@evil.test:"), json!(7)] {
        assert!(refused(set(evil.clone())).contains("location"), "{evil}");
    }
}

#[test]
fn an_option_is_a_field_of_the_profile_and_what_is_none_is_refused_with_all_that_there_are() {
    let set = |name: &str, value: serde_json::Value| {
        let option = (name.to_owned(), value);
        reach_with("openai:m", &[OPENAI], |wanted| wanted.options.push(option))
    };
    let WireSupport::Chat(profile) = set("names", json!({"seed": null})).expect("an option").speaks else { panic!() };
    assert_eq!((profile.name_of("seed"), profile.name_of("max_tokens")), (None, Some("max_completion_tokens")));
    assert!(refused(set("temprature", json!(1))).contains("there are above_high, auth, cache_control, "));
    assert!(refused(set("verbatim", json!("yes"))).contains("boolean"));
    assert!(refused(set("base_url", json!("http://evil.test"))).contains("cannot be set"), "the key would go there");
}

#[test]
fn a_model_of_bedrock_speaks_converse_and_is_shown_its_own_key_or_signed_requests() {
    const REGION: (&str, &str) = ("AWS_DEFAULT_REGION", "eu-west-1");
    let keyed = reach("bedrock:m", &[REGION, ("AWS_BEARER_TOKEN_BEDROCK", "k")]).expect("all is there");
    assert!(matches!(keyed.speaks, WireSupport::Converse(_)) && keyed.signer.is_none());
    assert_eq!(found(Ok(keyed)).1, "https://bedrock-runtime.eu-west-1.amazonaws.com");
    let missing = refused(reach("bedrock:m", &[("AWS_CONFIG_FILE", "/nowhere"), ("AWS_BEARER_TOKEN_BEDROCK", "k")]));
    assert!(missing.contains("set AWS_REGION or AWS_DEFAULT_REGION"), "{missing}");
    let claude =
        reach("vertex:claude-opus-4-6@messages", &[("GOOGLE_CLOUD_PROJECT", "p"), ("VERTEX_ACCESS_TOKEN", "k")]);
    let at_google = "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/anthropic";
    assert_eq!(found(claude).1, at_google);
}

#[cfg(feature = "bedrock")]
#[test]
fn requests_to_bedrock_are_signed_where_it_has_no_key_of_its_own() {
    let reach = reach("bedrock:m", &[("AWS_REGION", "eu-west-1")]).expect("keys are looked for when they are needed");
    assert!(reach.signer.is_some() && reach.key.is_none());
}

#[cfg(not(feature = "bedrock"))]
#[test]
fn what_needs_the_feature_bedrock_says_so() {
    let missing = refused(reach("bedrock:m", &[("AWS_REGION", "eu-west-1")]));
    assert!(missing.contains("enable the feature 'bedrock'"), "{missing}");
    let chat = reach("bedrock:m@chat", &[("AWS_REGION", "eu-west-1"), ("AWS_BEARER_TOKEN_BEDROCK", "k")]);
    assert!(chat.is_ok(), "it needs no feature");
}
