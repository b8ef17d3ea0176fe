//! How long a provider asks to wait.

use std::time::{Duration, SystemTime};

use http::HeaderMap;

/// The delay of `retry-after-ms` or `retry-after`, which is in seconds or a date.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |name: &str| header(name)?.parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|ms| ms / 1_000.0).or_else(|| number("retry-after"));
    if let Some(seconds) = seconds {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = |name: &str| httpdate::parse_http_date(header(name)?).ok();
    // The provider's own clock, if it shows it: the local one may be wrong.
    let now = date("date").unwrap_or_else(SystemTime::now);
    date("retry-after").map(|until| until.duration_since(now).unwrap_or_default())
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
    fn nonsense_is_no_delay() {
        for value in ["-1", "soon", "NaN", "1e300", ""] {
            assert_eq!(delay(&[("retry-after", value)]), None, "{value}");
        }
    }
}
