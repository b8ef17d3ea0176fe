//! Retry delay requested by a provider.

use std::time::{Duration, SystemTime};

use http::HeaderMap;

/// Returns the delay from `retry-after-ms` or `retry-after`, which is in seconds or a date; without
/// either, the time until an exhausted limit resets (`x-ratelimit-reset` and similar headers).
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    asked_for(header).or_else(|| {
        let of_limit = |suffix: &str| {
            let used_up =
                header(&format!("x-ratelimit-remaining{suffix}"))?.parse::<f64>().is_ok_and(|left| left <= 0.0);
            header(&format!("x-ratelimit-reset{suffix}")).filter(|_| used_up).and_then(reset)
        };
        ["-requests", "-tokens", ""].into_iter().filter_map(of_limit).max()
    })
}

/// Returns the delay from `retry-after` and its variants.
fn asked_for<'h>(header: impl Fn(&str) -> Option<&'h str>) -> Option<Duration> {
    let number = |name: &str| header(name)?.parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|ms| ms / 1_000.0).or_else(|| number("retry-after"));
    if let Some(seconds) = seconds {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = |name: &str| httpdate::parse_http_date(header(name)?).ok();
    // Prefer the provider's clock if the response has a date: the local clock may be wrong.
    let now = date("date").unwrap_or_else(SystemTime::now);
    date("retry-after").map(|until| until.duration_since(now).unwrap_or_default())
}

/// Numbers below this are seconds from now; larger ones are Unix times in seconds, or in
/// milliseconds: no delay lasts years.
const SOONEST_EPOCH: f64 = 1e9;
const SOONEST_EPOCH_MS: f64 = 1e12;

/// Parses a duration, as `12`, `1s`, `6m0s`, `120ms` or `1h2m3.5s`, or a Unix time in seconds or
/// milliseconds.
fn reset(text: &str) -> Option<Duration> {
    if let Ok(number) = text.parse::<f64>() {
        let (now, at) = match number {
            n if n < SOONEST_EPOCH => (0.0, n),
            n => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
                (now, if n < SOONEST_EPOCH_MS { n } else { n / 1_000.0 })
            }
        };
        return Duration::try_from_secs_f64((at - now).max(0.0)).ok();
    }
    let (mut total, mut rest) = (0.0, text);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(digits);
        let unit = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let seconds = match &after[..unit] {
            "h" => 3_600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * seconds;
        rest = &after[unit..];
    }
    Duration::try_from_secs_f64(total).ok().filter(|_| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delay(headers: &[(&'static str, &str)]) -> Option<Duration> {
        retry_after(&headers.iter().map(|(n, v)| (n.parse().expect("name"), v.parse().expect("value"))).collect())
    }

    #[test]
    fn all_three_spellings_are_read() {
        assert_eq!(delay(&[("retry-after-ms", "1500"), ("retry-after", "9")]), Some(Duration::from_millis(1_500)));
        assert_eq!(delay(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        let dates = [("date", "Wed, 21 Oct 2015 07:28:00 GMT"), ("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT")];
        assert_eq!(delay(&dates), Some(Duration::from_secs(30)));
        let past = [("date", "Wed, 21 Oct 2015 07:28:00 GMT"), ("retry-after", "Wed, 21 Oct 2015 07:27:00 GMT")];
        assert_eq!(delay(&past), Some(Duration::ZERO));
    }

    #[test]
    fn a_limit_that_is_used_up_says_when_it_is_there_again() {
        let limits = |requests, reset| {
            delay(&[
                ("x-ratelimit-remaining-requests", requests),
                ("x-ratelimit-reset-requests", reset),
                ("x-ratelimit-remaining-tokens", "900"),
                ("x-ratelimit-reset-tokens", "9m"),
            ])
        };
        assert_eq!(limits("0", "1m2.5s"), Some(Duration::from_millis(62_500)));
        assert_eq!(limits("0", "120ms"), Some(Duration::from_millis(120)));
        assert_eq!(limits("0", "7"), Some(Duration::from_secs(7)));
        assert_eq!((limits("1", "7"), limits("0", "later"), limits("0", "")), (None, None, None));
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_millis() + 60_000;
        let router = delay(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", &at.to_string())]).expect("a delay");
        assert!((50..=60).contains(&router.as_secs()), "{router:?}");
        let both = [("retry-after", "3"), ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "9")];
        assert_eq!(delay(&both), Some(Duration::from_secs(3)), "what is asked for counts");
    }

    #[test]
    fn nonsense_is_no_delay() {
        for value in ["-1", "soon", "NaN", "1e300", ""] {
            assert_eq!(delay(&[("retry-after", value)]), None, "{value}");
        }
    }
}
