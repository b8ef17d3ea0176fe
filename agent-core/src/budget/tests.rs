//! Tests of the guarantees of budgets under any interleaving.

use futures::FutureExt;
use proptest::prelude::*;

use super::*;
use crate::{
    history::History,
    llm::{ModelInfo, ModelResponse, TokenCounter},
    message::Message,
    model::ModelRequest,
    state::RunIds,
    testing::detached_run,
    tooling::ToolSpecs,
    usage::{PriceTable, Usage},
};

/// In memory, only running calls cause waits.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never().expect("nothing to wait for")
}

fn tokens(n: u64) -> Amounts {
    Amounts::none().tokens(n)
}

fn settled(budget: &Budget) -> Amounts {
    block_on(budget.balance()).expect("in memory").settled
}

fn reserved(budget: &Budget) -> Amounts {
    block_on(budget.balance()).expect("in memory").reserved
}

/// A token is a byte, and costs a millionth of a dollar.
struct Plain;

impl TokenCounter for Plain {
    fn text(&self, text: &str) -> u64 {
        text.len() as u64
    }

    fn message(&self, message: &Message) -> u64 {
        self.text(&message.text())
    }

    fn tools(&self, _: &ToolSpecs) -> u64 {
        0
    }
}

impl PriceTable for Plain {
    fn cost(&self, model: &str, usage: &Usage) -> Option<u64> {
        (model == "known").then_some(usage.total())
    }
}

fn priced(caps: Caps) -> Budget {
    Budget::builder().caps(caps).prices(Plain).counter(Plain).build().expect("builds")
}

/// A call whose prompt is ten tokens.
fn request(model: &str) -> ModelRequest {
    let history = History::from_messages([Message::user("ten tokens")]).expect("paired");
    let mut req = ModelRequest::new(detached_run(history).cx().clone());
    req.model = Some(Arc::new(ModelInfo::new(model)));
    req
}

#[test]
fn a_dropped_reservation_is_given_back_everywhere_unless_its_call_began() {
    let root = Budget::new(Caps::default().tokens(10));
    let child = root.child(Caps::default().tokens(5));
    drop(block_on(child.reserve(tokens(5))).expect("fits"));
    assert_eq!((settled(&root).tokens, reserved(&root).tokens, reserved(&child).tokens), (0, 0, 0));
    let mut call = block_on(child.reserve(tokens(4))).expect("fits");
    call.begin();
    drop(call);
    assert_eq!((settled(&root).tokens, settled(&child).tokens, reserved(&root).tokens), (4, 4, 0));
}

#[test]
fn a_refusal_reserves_nothing_and_names_what_is_used_up() {
    let root = Budget::new(Caps::default().tokens(10));
    let (a, b) = (root.child(Caps::default().tokens(8)), root.child(Caps::default().tokens(8)));
    let _held = block_on(a.reserve(tokens(8))).expect("fits");
    let e = block_on(b.reserve(tokens(8))).expect_err("refused");
    assert_eq!((e.kind(), e.context("budget")), (ErrorKind::Limit, Some("tokens")));
    assert_eq!((reserved(&root).tokens, reserved(&b).tokens), (8, 0));
    let e = block_on(a.reserve(tokens(1))).expect_err("over its own cap");
    assert!(e.message().contains("cap of 8"), "{e}");
    assert_eq!(reserved(&root).tokens, 8, "what the parent had set aside is back");
}

#[test]
fn what_was_used_is_booked_when_it_is_settled_though_nobody_waits() {
    let in_ledger = Budget::builder().caps(Caps::default().tokens(100)).build().expect("sound");
    for budget in [Budget::new(Caps::default().tokens(100)), in_ledger] {
        drop(block_on(budget.reserve(tokens(80))).expect("fits").settle(tokens(20)));
        assert_eq!((settled(&budget), reserved(&budget)), (tokens(20), tokens(0)), "{budget:?}");
    }
}

#[test]
fn what_is_used_up_keeps_nobody_from_something_else() {
    let budget = Budget::new(Caps::default().tokens(10).tool_calls(1));
    block_on(block_on(budget.reserve(tokens(10))).expect("fits").settle(tokens(25))).expect("settles");
    assert!(block_on(budget.reserve(Amounts::none().tool_calls(1))).is_ok());
    assert!(block_on(budget.reserve(tokens(1))).is_err());
}

#[test]
fn an_answer_is_no_longer_than_tokens_and_money_allow() {
    for (caps, longest) in [
        (Caps::default().tokens(100), Some(90)),
        (Caps::default().cost(60), Some(50)),
        (Caps::default().tokens(100).cost(60), Some(50)),
        (Caps::default().tokens(1 << 20), Some(8_192)),
        (Caps::default().model_calls(3), None),
    ] {
        let (budget, mut req) = (priced(caps), request("known"));
        let held = block_on(budget.reserve_model_call(&mut req)).expect("fits").expect("limited");
        assert_eq!(req.params.max_tokens, longest, "{caps:?}");
        assert_eq!(held.amounts().model_calls, 1);
    }
}

#[test]
fn a_call_wants_one_token_of_an_answer() {
    for caps in [Caps::default().tokens(10), Caps::default().cost(10), Caps::default().model_calls(0)] {
        let e = block_on(priced(caps).reserve_model_call(&mut request("known"))).expect_err("used up");
        assert_eq!(e.kind(), ErrorKind::Limit, "{e}");
    }
    let mut req = request("known");
    assert!(block_on(priced(Caps::default().tokens(11)).reserve_model_call(&mut req)).is_ok());
    assert_eq!(req.params.max_tokens, Some(1));
}

#[test]
fn a_model_without_a_price_is_an_error_under_a_cap_on_money_unless_told_otherwise() {
    let reserve = |budget: Budget| block_on(budget.reserve_model_call(&mut request("nobody's")));
    let e = reserve(priced(Caps::default().cost(1_000))).expect_err("no price");
    assert_eq!(e.kind(), ErrorKind::Config);
    assert!(e.message().contains("model 'nobody's' has no price"), "{e}");
    assert!(reserve(Budget::new(Caps::default().cost(1))).expect_err("no table").message().contains("prices(..)"));
    assert!(reserve(priced(Caps::default().tokens(1_000))).is_ok(), "no money, no price");
    let free = Budget::builder().caps(Caps::default().cost(1)).counter(Plain).allow_unpriced().build().expect("builds");
    assert!(reserve(free).is_ok());
}

#[test]
fn a_call_waits_for_what_calls_under_way_may_give_back() {
    let budget = priced(Caps::default().cost(100));
    let mut first = request("known");
    let held = block_on(budget.reserve_model_call(&mut first)).expect("fits").expect("limited");
    assert_eq!((first.params.max_tokens, held.amounts().cost), (Some(90), 100));
    let mut second = request("known");
    let mut waiting = Box::pin(budget.reserve_model_call(&mut second));
    assert!(waiting.as_mut().now_or_never().is_none(), "everything is set aside");
    let response = ModelResponse::new(crate::message::AssistantMessage::new(Vec::new())).with_usage(Usage::new(10, 20));
    let used = budget.used_by(first.model.as_deref(), &response);
    block_on(held.settle(used)).expect("settles");
    let _second = block_on(waiting).expect("fits now").expect("limited");
    assert_eq!(second.params.max_tokens, Some(60), "70 are left, and the prompt takes 10");
}

#[test]
fn windows_are_accounts_of_their_own_and_a_run_that_goes_on_has_used_what_it_had_used() {
    let budget = Budget::builder()
        .window(Window::User, Caps::default().tokens(100))
        .window(Window::Session, Caps::default().tokens(50))
        .window(Window::Run, Caps::default().tokens(30))
        .build()
        .expect("builds");
    let run =
        |session: &str, user: &str, spent| budget.of_run(&RunIds::root("a", session), Some(user), None, tokens(spent));
    let take = |run: Budget, n| block_on(async { run.reserve(tokens(n)).await?.settle(tokens(n)).await });
    assert!(take(run("s", "ann", 0), 30).is_ok());
    assert!(take(run("s", "ann", 0), 30).is_err(), "the session has 20 left");
    assert!(take(run("s", "ann", 0), 20).is_ok());
    assert!(take(run("t", "ann", 25), 6).is_err(), "the run has 5 left");
    assert!(take(run("t", "ann", 0), 30).is_ok() && take(run("t", "ann", 0), 20).is_ok());
    assert!(take(run("u", "ann", 0), 1).is_err(), "she has nothing left");
    assert!(take(run("u", "bob", 0), 1).is_ok());
}

#[test]
fn an_agent_below_one_with_the_same_budget_counts_once() {
    let budget = Budget::new(Caps::default().tokens(10));
    let root = budget.of_run(&RunIds::root("a", "s"), None, None, Amounts::none());
    let child = root.of_sub_run(&budget, Some(Caps::default().tokens(8)), Amounts::none());
    block_on(block_on(child.reserve(tokens(6))).expect("fits").settle(tokens(6))).expect("settles");
    assert_eq!((settled(&budget).tokens, root.spent().tokens, child.spent().tokens), (6, 6, 6));
    assert!(block_on(child.reserve(tokens(3))).is_err(), "its share is 8");
    let _rest = block_on(root.reserve(tokens(4))).expect("the parent has 4 left");
    assert!(block_on(child.reserve(tokens(1))).is_err(), "a child never exceeds its parent");
}

#[derive(Clone, Debug)]
enum Act {
    Reserve(usize, u64),
    Begin(usize),
    Settle(usize, u64),
    Drop(usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (0..7usize, 1..40u64).prop_map(|(who, n)| Act::Reserve(who, n)),
        1 => (0..16usize).prop_map(Act::Begin),
        2 => (0..16usize, 0..100u64).prop_map(|(which, percent)| Act::Settle(which, percent)),
        2 => (0..16usize).prop_map(Act::Drop),
    ];
    prop::collection::vec(act, 1..200)
}

proptest! {
    /// All accounts of a tree of three levels, after every action: settled and reserved amounts
    /// stay under the cap, and each account equals the sum of its children's amounts and its own.
    #[test]
    fn no_account_passes_its_cap_or_its_parent_and_none_goes_below_nothing(caps in prop::collection::vec(10..120u64, 7), acts in acts()) {
        let root = Budget::new(Caps::default().tokens(caps[0]));
        let mut tree = vec![root.clone()];
        for i in 1..7 {
            let parent: Budget = tree[(i - 1) / 2].clone();
            tree.push(parent.child(Caps::default().tokens(caps[i])));
        }
        let mut open: Vec<(usize, Reservation)> = Vec::new();
        let mut own_settled = [0u64; 7];
        for act in acts {
            match act {
                Act::Reserve(who, n) => {
                    if let Ok(held) = block_on(tree[who].reserve(tokens(n))) {
                        open.push((who, held));
                    }
                }
                Act::Begin(which) if which < open.len() => open[which].1.begin(),
                Act::Settle(which, percent) if which < open.len() => {
                    let (who, held) = open.swap_remove(which);
                    let used = held.amounts().tokens * percent / 99;
                    own_settled[who] += used;
                    block_on(held.settle(tokens(used))).expect("in memory");
                }
                Act::Drop(which) if which < open.len() => {
                    let (who, held) = open.swap_remove(which);
                    own_settled[who] += if held.begun() { held.amounts().tokens } else { 0 };
                    drop(held);
                }
                _ => {}
            }
            let below = |who: usize, of: usize| {
                std::iter::successors(Some(who), |at| at.checked_sub(1).map(|at| at / 2)).any(|at| at == of)
            };
            for (i, budget) in tree.iter().enumerate() {
                let (settled, reserved) = (settled(budget).tokens, reserved(budget).tokens);
                prop_assert!(settled + reserved <= caps[i]);
                let taken: u64 = (0..7).filter(|who| below(*who, i)).map(|who| own_settled[who]).sum();
                let held: u64 = open.iter().filter(|(who, _)| below(*who, i)).map(|(_, held)| held.amounts().tokens).sum();
                prop_assert_eq!((settled, reserved), (taken, held));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_at_once_never_pass_the_cap_and_use_all_of_it() {
    let budget = priced(Caps::default().cost(5_000));
    let runs = (0..64u64).map(|i| {
        let budget = budget.child(Caps::default());
        tokio::spawn(async move {
            let mut calls = 0;
            loop {
                let mut req = request("known");
                Arc::make_mut(&mut req.params).max_tokens = Some(10 + i);
                let Ok(held) = budget.reserve_model_call(&mut req).await else { return calls };
                let held = held.expect("limited");
                let used = (held.amounts().cost * (i % 5 + 1) / 5).max(1);
                tokio::task::yield_now().await;
                held.settle(Amounts::none().cost(used)).await.expect("settles");
                calls += 1;
            }
        })
    });
    let calls: u64 = futures::future::join_all(runs).await.into_iter().map(|calls| calls.expect("no panic")).sum();
    let spent = settled(&budget).cost;
    assert!(spent <= 5_000 && spent > 4_900, "{spent} after {calls} calls");
    assert_eq!(reserved(&budget), Amounts::none());
}
