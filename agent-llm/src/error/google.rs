//! Google's error `details`: a list of objects tagged with their type.

use std::time::Duration;

use serde_json::Value;

/// Returns the delay to wait: the `retryDelay` of a `RetryInfo`, such as `7.5s`.
pub(super) fn retry_delay(error: &Value) -> Option<Duration> {
    let delay = detail(error, "google.rpc.RetryInfo")?.get("retryDelay")?;
    let seconds = match delay.as_str() {
        Some(text) => text.trim().strip_suffix('s')?.parse().ok()?,
        None => {
            delay.as_object()?;
            let field = |name: &str| delay.get(name).map_or(Some(0.0), Value::as_f64);
            field("seconds")? + field("nanos")? / 1e9
        }
    };
    Duration::try_from_secs_f64(seconds).ok()
}

/// Returns the reason: the `reason` of an `ErrorInfo`, such as `API_KEY_INVALID`.
pub(super) fn reason(error: &Value) -> Option<&str> {
    detail(error, "google.rpc.ErrorInfo")?.get("reason")?.as_str()
}

fn detail<'a>(error: &'a Value, kind: &str) -> Option<&'a Value> {
    let details = error.get("details")?.as_array()?;
    details.iter().find(|detail| detail["@type"].as_str().is_some_and(|name| name.ends_with(kind)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_delay_is_read_in_both_forms_and_nonsense_is_none() {
        let delay = |delay: Value| {
            let info = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay});
            retry_delay(&json!({"details": [{"@type": "type.googleapis.com/google.rpc.Help"}, info]}))
        };
        assert_eq!(delay(json!("7s")), Some(Duration::from_secs(7)));
        assert_eq!(delay(json!("0.25s")), Some(Duration::from_millis(250)));
        assert_eq!(delay(json!({"seconds": 7, "nanos": 500_000_000})), Some(Duration::from_millis(7_500)));
        for nonsense in [json!("7"), json!("-1s"), json!("soon"), json!(null), json!({"seconds": "x"})] {
            assert_eq!(delay(nonsense.clone()), None, "{nonsense}");
        }
        assert_eq!(retry_delay(&json!({"details": "none"})), None);
    }
}
