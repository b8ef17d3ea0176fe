//! Conformance tests of ledgers.

use std::sync::Arc;

use agent_core::{
    Budget, Caps,
    budget::{Amounts, Balance, Ledger, Reserved},
};
use futures::future::join_all;

/// Generates one test per claim about a [`Ledger`](agent_core::budget::Ledger). Takes a closure
/// that returns a function to open handles on the same fresh accounts, and a guard that must
/// outlive them.
///
/// ```
/// mod in_memory {
///     use std::sync::Arc;
///
///     use agent_core::budget::{Ledger, MemoryLedger};
///
///     agent_store::ledger_conformance!(|| {
///         let ledger = Arc::new(MemoryLedger::new());
///         (move || ledger.clone() as Arc<dyn Ledger>, ())
///     });
/// }
/// ```
#[macro_export]
macro_rules! ledger_conformance {
    ($make:expr) => {
        $crate::claims! { by_reference, $make;
            all_who_open_an_account_see_the_same
            accounts_are_kept_apart
            what_does_not_fit_is_not_set_aside
            a_reservation_ends_once
            a_settling_that_nobody_waits_for_is_done_all_the_same
            past_accounts_are_forgotten_unless_something_is_set_aside_in_them
            all_amounts_are_booked_even_more_than_was_set_aside
            budgets_over_one_account_never_pass_the_cap_together
            several_accounts_are_reserved_and_settled_together_or_not_at_all
        }
    };
}

type Open<'a> = &'a (dyn Fn() -> Arc<dyn Ledger> + Send + Sync);

fn tokens(n: u64) -> Amounts {
    Amounts::none().tokens(n)
}

async fn reserve(ledger: &dyn Ledger, account: &str, caps: &Caps, wanted: Amounts) -> Option<u64> {
    ledger.reserve(account, caps, wanted).await.expect("works")
}

async fn balance(ledger: &dyn Ledger, account: &str) -> Balance {
    ledger.balance(account).await.expect("reads")
}

/// Settled and reserved amounts are the same for every handle.
pub async fn all_who_open_an_account_see_the_same(open: Open<'_>) {
    let (a, b, caps) = (open(), open(), Caps::default().tokens(100));
    let first = reserve(&a, "x", &caps, tokens(60)).await.expect("fits");
    assert_eq!(reserve(&b, "x", &caps, tokens(60)).await, None);
    assert_eq!(balance(&b, "x").await, Balance::new(Amounts::none(), tokens(60)));
    a.settle("x", first, tokens(50)).await.expect("settles");
    assert_eq!(balance(&b, "x").await, Balance::new(tokens(50), Amounts::none()));
    assert!(reserve(&b, "x", &caps, tokens(50)).await.is_some());
    assert_eq!(reserve(&open(), "x", &caps, tokens(1)).await, None);
}

/// Accounts may have any names and are isolated from each other.
pub async fn accounts_are_kept_apart(open: Open<'_>) {
    let (ledger, caps) = (open(), Caps::default().tokens(100));
    let names = ["x", "X", "x ", "é", "a/b", "'; DROP TABLE account; --"];
    for name in names {
        let receipt = reserve(&ledger, name, &caps, tokens(60)).await.expect("fits");
        assert_eq!(reserve(&ledger, name, &caps, tokens(60)).await, None);
        ledger.settle(name, receipt, tokens(7)).await.expect("settles");
    }
    for name in names {
        assert_eq!(balance(&ledger, name).await.settled, tokens(7), "{name}");
    }
    assert_eq!(balance(&ledger, "nobody's").await, Balance::default());
}

/// Each amount has its cap, which the reservation passes.
pub async fn what_does_not_fit_is_not_set_aside(open: Open<'_>) {
    let ledger = open();
    for (caps, fits, too_much) in [
        (Caps::default().tokens(9), tokens(9), tokens(1)),
        (Caps::default().cost(9), Amounts::none().cost(9), Amounts::none().cost(1)),
        (Caps::default().model_calls(9), Amounts::none().model_calls(9), Amounts::none().model_calls(1)),
        (Caps::default().tool_calls(9), Amounts::none().tool_calls(9), Amounts::none().tool_calls(1)),
    ] {
        let account = format!("{caps:?}");
        assert!(reserve(&ledger, &account, &caps, fits).await.is_some(), "{caps:?}");
        assert_eq!(reserve(&ledger, &account, &caps, too_much).await, None, "{caps:?}");
        assert_eq!(balance(&ledger, &account).await.reserved, fits);
        assert!(reserve(&ledger, &account, &Caps::default(), too_much).await.is_some(), "a reservation without caps");
    }
}

/// A second settlement, and one of an unknown reservation, change nothing.
pub async fn a_reservation_ends_once(open: Open<'_>) {
    let (a, b) = (open(), open());
    let receipt = reserve(&a, "x", &Caps::default(), tokens(9)).await.expect("fits");
    a.settle("x", receipt, tokens(5)).await.expect("settles");
    for ledger in [&a, &b] {
        ledger.settle("x", receipt, tokens(5)).await.expect("changes nothing");
        ledger.settle("x", receipt + 1_000_000, tokens(5)).await.expect("nobody's");
    }
    assert_eq!(balance(&b, "x").await, Balance::new(tokens(5), Amounts::none()));
}

/// A settlement is enqueued when the method is called.
pub async fn a_settling_that_nobody_waits_for_is_done_all_the_same(open: Open<'_>) {
    let (ledger, watcher) = (open(), open());
    let receipt = reserve(&ledger, "x", &Caps::default(), tokens(9)).await.expect("fits");
    drop(ledger.settle("x", receipt, tokens(5)));
    drop(ledger); // a ledger with a thread waits for it
    assert_eq!(balance(&watcher, "x").await, Balance::new(tokens(5), Amounts::none()));
}

/// Deletes exactly the accounts that begin with the prefix and sort before the oldest, byte by
/// byte.
pub async fn past_accounts_are_forgotten_unless_something_is_set_aside_in_them(open: Open<'_>) {
    let (ledger, caps) = (open(), Caps::default());
    let past = ["b/day/2026-01-01", "b/day/2026-01-02", "b/day/10", "b/day/"];
    let kept = [
        "b/day/2026-01-03",
        "b/day/2026-01-04",
        "b/all",
        "B/day/2026-01-01",
        "bb/day/2026-01-01",
        "b/day_1",
        "b/day/a",
    ];
    for name in past.iter().chain(&kept) {
        let receipt = reserve(&ledger, name, &caps, tokens(9)).await.expect("fits");
        ledger.settle(name, receipt, tokens(7)).await.expect("settles");
    }
    let open = reserve(&ledger, past[1], &caps, tokens(5)).await.expect("fits");
    ledger.forget("b/day/", kept[0]);
    let forgotten = |name: &str| name != past[1] && past.contains(&name);
    for name in past.iter().chain(&kept) {
        let settled = if forgotten(name) { Amounts::none() } else { tokens(7) };
        assert_eq!(balance(&ledger, name).await.settled, settled, "{name}");
    }
    ledger.settle(past[1], open, tokens(1)).await.expect("settles");
    assert_eq!(balance(&ledger, past[1]).await, Balance::new(tokens(8), Amounts::none()));
    ledger.forget("b/day/", kept[0]);
    assert_eq!(balance(&ledger, past[1]).await, Balance::default());
}

/// The real usage is booked and summed.
pub async fn all_amounts_are_booked_even_more_than_was_set_aside(open: Open<'_>) {
    let ledger = open();
    let used = tokens(7).cost(1 << 40).model_calls(2).tool_calls(3);
    for _ in 0..2 {
        let receipt = reserve(&ledger, "x", &Caps::default(), tokens(1)).await.expect("fits");
        ledger.settle("x", receipt, used).await.expect("settles");
    }
    assert_eq!(balance(&ledger, "x").await, Balance::new(used.plus(used), Amounts::none()));
}

/// A cap holds under concurrent reservations.
pub async fn budgets_over_one_account_never_pass_the_cap_together(open: Open<'_>) {
    let workers = (0..4).map(|worker| {
        let ledger = open();
        tokio::spawn(async move {
            let budget = Budget::builder().caps(Caps::default().tokens(100)).ledger(ledger).build().expect("builds");
            for i in 0..20 {
                if let Ok(held) = budget.reserve(tokens(7)).await {
                    held.settle(tokens((i + worker) % 8)).await.expect("settles");
                }
            }
        })
    });
    for worker in join_all(workers).await {
        worker.expect("no panic");
    }
    let Balance { settled, reserved, .. } = balance(&open(), "budget/all").await;
    assert!(settled.tokens <= 100 && settled.tokens > 70 && reserved == Amounts::none(), "{settled:?}");
}

/// A reservation in several accounts is made in all of them or in none, in any order and by several
/// handles at once.
pub async fn several_accounts_are_reserved_and_settled_together_or_not_at_all(open: Open<'_>) {
    let ledger = open();
    let capped = |name: &str, cap| (Arc::<str>::from(name), Caps::default().tokens(cap));
    let all = [capped("wide", 100), capped("narrow", 50), capped("wide too", 100)];
    let refused = ledger.reserve_all(&all, tokens(60)).await.expect("works");
    assert_eq!(refused, Reserved::RefusedBy(1));
    for (name, _) in &all {
        assert_eq!(balance(&ledger, name).await, Balance::default(), "{name}");
    }
    let Reserved::All(receipts) = ledger.reserve_all(&all, tokens(40)).await.expect("works") else { panic!("fits") };
    assert_eq!(balance(&open(), "narrow").await, Balance::new(Amounts::none(), tokens(40)));
    let reservations: Vec<_> = all.iter().map(|(name, _)| name.clone()).zip(receipts).collect();
    for _ in 0..2 {
        ledger.settle_all(&reservations, tokens(30)).await.expect("settles once");
    }
    for (name, _) in &all {
        assert_eq!(balance(&ledger, name).await, Balance::new(tokens(30), Amounts::none()), "{name}");
    }

    let (there, back) = ([capped("x", 10), capped("y", 10)], [capped("y", 10), capped("x", 10)]);
    let handles = [open(), open(), open(), open()];
    let reserving = (0..20).map(|n| {
        let (ledger, accounts) = (&handles[n % 4], if n % 2 == 0 { &there } else { &back });
        async move { ledger.reserve_all(accounts, tokens(1)).await.expect("works") }
    });
    let reserved = join_all(reserving).await;
    let fits = reserved.iter().filter(|reserved| matches!(reserved, Reserved::All(_))).count();
    assert_eq!((fits, balance(&ledger, "x").await.reserved), (10, tokens(10)));
    assert_eq!(balance(&ledger, "y").await.reserved, tokens(10));
}
