//! What a call goes over: the sandbox, which is one, or a trunk of the workspace's.
use entities::{
    ids::{ApiKeyId, TrunkId},
    session::Passed,
    values::{E164, Env, Moment},
};
use std::collections::{BTreeSet, HashMap};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Route {
    Sandbox,
    Trunk(TrunkId),
    /// A live call that has no trunk.
    Nowhere,
}

impl Route {
    pub fn of(env: Env, trunk: Option<TrunkId>) -> Self {
        match (env, trunk) {
            (Env::Test, _) => Route::Sandbox,
            (Env::Live, Some(trunk)) => Route::Trunk(trunk),
            (Env::Live, None) => Route::Nowhere,
        }
    }

    pub fn trunk(self) -> Option<TrunkId> {
        match self {
            Route::Trunk(trunk) => Some(trunk),
            Route::Sandbox | Route::Nowhere => None,
        }
    }
}

/// Routes that take no call at the moment, and API keys of which none may leave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    routes: BTreeSet<Route>,
    api_keys: BTreeSet<ApiKeyId>,
}

impl Closed {
    pub fn note(&mut self, route: Route) {
        self.routes.insert(route);
    }

    pub fn note_key(&mut self, key: ApiKeyId) {
        self.api_keys.insert(key);
    }

    pub fn has(&self, route: Route) -> bool {
        self.routes.contains(&route)
    }

    /// Whose sessions need not be read.
    pub fn passed(&self) -> Passed {
        Passed {
            sandbox: self.has(Route::Sandbox),
            trunks: self.routes.iter().filter_map(|route| route.trunk()).collect(),
            without_trunk: self.has(Route::Nowhere),
            api_keys: self.api_keys.iter().copied().collect(),
        }
    }
}

/// A number that a campaign's calls show, and what they go over then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub number: E164,
    pub route: Route,
    /// When it had its last turn, counted in turns; 0: never.
    turn: u64,
    /// Until then it is shown only if no other is left.
    rests_until: Option<Moment>,
}

impl Caller {
    fn rests(&self, at: Moment) -> bool {
        self.rests_until.is_some_and(|until| at < until)
    }
}

/// The numbers of one campaign. They take turns, and whoever has rested longest goes first among those whose trunk takes a call:
/// a slow trunk holds no other one up, and its own numbers take turns on it. A number that rests is left out as long as there is another.
#[derive(Clone, Debug, Default)]
pub struct Callers {
    all: Vec<Caller>,
    /// Each once.
    routes: BTreeSet<Route>,
    turns: u64,
}

impl Callers {
    /// `before`: the turns that they have had in a queue of the same campaign.
    pub fn new(callers: impl Iterator<Item = (E164, Route)>, before: Option<Callers>) -> Self {
        let before = before.unwrap_or_default();
        let turn_of = |number: &E164| {
            let known = before.all.iter().find(|caller| caller.number == *number);
            known.map_or(0, |caller| caller.turn)
        };
        let mut all: Vec<Caller> = Vec::new();
        for (number, route) in callers {
            // One that is listed twice has one turn.
            if all.iter().all(|known| known.number != number) {
                all.push(Caller {
                    turn: turn_of(&number),
                    number,
                    route,
                    rests_until: None,
                });
            }
        }
        Callers {
            routes: all.iter().map(|caller| caller.route).collect(),
            all,
            turns: before.turns,
        }
    }

    /// These rest until then.
    pub fn resting(mut self, until: &HashMap<E164, Moment>) -> Self {
        for caller in &mut self.all {
            caller.rests_until = until.get(&caller.number).copied();
        }
        self
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn routes(&self) -> impl Iterator<Item = Route> + '_ {
        self.routes.iter().copied()
    }

    /// Whose turn it is among those whose route is open; it is not over before [`Callers::called`].
    pub fn next(&self, at: Moment, is_open: impl Fn(Route) -> bool) -> Option<&Caller> {
        self.first(at, |caller| is_open(caller.route))
    }

    /// The same among those that `may` be shown. If none may, it is whose turn it would be: whether it may be called at all, the law says
    /// elsewhere.
    pub fn next_shown(
        &self,
        may: impl Fn(&E164) -> bool,
        at: Moment,
        is_open: impl Fn(Route) -> bool,
    ) -> Option<&Caller> {
        let fits = |caller: &Caller| is_open(caller.route) && may(&caller.number);
        self.first(at, fits).or_else(|| self.next(at, &is_open))
    }

    fn first(&self, at: Moment, fits: impl Fn(&Caller) -> bool) -> Option<&Caller> {
        let fits = &fits;
        let fitting = move || self.all.iter().filter(move |caller: &&Caller| fits(caller));
        // The first of those that have rested equally long: `min_by_key` keeps the list's order.
        let fresh = fitting()
            .filter(|caller| !caller.rests(at))
            .min_by_key(|caller| caller.turn);
        fresh.or_else(|| fitting().min_by_key(|caller| caller.turn))
    }

    /// It has had its turn.
    pub fn called(&mut self, number: &E164) {
        self.turns += 1;
        if let Some(caller) = self.all.iter_mut().find(|caller| caller.number == *number) {
            caller.turn = self.turns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn trunk(n: u128) -> Route {
        Route::Trunk(TrunkId(Uuid::from_u128(n)))
    }

    fn callers(routes: &[u128]) -> Callers {
        let number = |n: usize| format!("+1202555{n:04}").parse().unwrap();
        let all = routes.iter().enumerate().map(|(n, route)| (number(n), trunk(*route)));
        Callers::new(all, None)
    }

    fn at(seconds: i64) -> Moment {
        Moment::from_millis(seconds * 1_000)
    }

    /// The places of the numbers that have so many turns, while only these trunks are open.
    fn turns(callers: &mut Callers, count: usize, open: &[u128]) -> Vec<usize> {
        let mut found = Vec::new();
        for _ in 0..count {
            let next = callers.next(at(0), |route| open.iter().any(|n| trunk(*n) == route));
            let Some(number) = next.map(|caller| caller.number.clone()) else {
                break;
            };
            found.extend(callers.all.iter().position(|caller| caller.number == number));
            callers.called(&number);
        }
        found
    }

    #[test]
    fn numbers_take_turns_and_a_closed_trunk_holds_no_other_up() {
        let mut all = callers(&[1, 1, 2]);
        assert_eq!(turns(&mut all, 4, &[1, 2]), [0, 1, 2, 0]);
        // The numbers of the trunk that is open go on by themselves.
        assert_eq!(turns(&mut all, 3, &[2]), [2, 2, 2]);
        assert_eq!(turns(&mut all, 3, &[1]), [1, 0, 1]);
        // Whoever has rested longest goes first.
        assert_eq!(turns(&mut all, 3, &[1, 2]), [2, 0, 1]);
        assert_eq!(turns(&mut all, 3, &[]), Vec::<usize>::new());
    }

    #[test]
    fn a_new_queue_keeps_the_turns_of_the_numbers_that_are_still_there() {
        let mut all = callers(&[1, 1, 2]);
        turns(&mut all, 2, &[1, 2]);
        let number = |n: usize| all.all[n].number.clone();
        let new = "+12025559999".parse().unwrap();
        let kept = [(number(1), trunk(1)), (number(2), trunk(2)), (new, trunk(3))];
        let mut after = Callers::new(kept.into_iter(), Some(all.clone()));
        assert_eq!(turns(&mut after, 3, &[1, 2, 3]), [1, 2, 0]);
    }

    #[test]
    fn one_that_is_listed_twice_keeps_nobody_from_their_turns() {
        let number = |n: usize| callers(&[1, 1]).all[n].number.clone();
        let listed = [(number(0), trunk(1)), (number(0), trunk(1)), (number(1), trunk(1))];
        let mut all = Callers::new(listed.into_iter(), None);
        assert_eq!(turns(&mut all, 4, &[1]), [0, 1, 0, 1]);
    }

    #[test]
    fn a_number_that_rests_is_shown_only_if_no_other_is_left() {
        let of = |n: usize| callers(&[1, 1, 2]).all[n].number.clone();
        let rests = HashMap::from([(of(0), at(60)), (of(2), at(60))]);
        let all = callers(&[1, 1, 2]).resting(&rests);
        let next = |seconds, open: u128| {
            let caller = all.next(at(seconds), |route| route == trunk(open));
            caller.map(|caller| caller.number.clone())
        };
        assert_eq!(next(59, 1), Some(of(1)));
        assert_eq!(next(59, 2), Some(of(2)), "there is no other on that trunk");
        assert_eq!(next(60, 1), Some(of(0)), "it has rested");
    }

    #[test]
    fn a_number_is_not_shown_where_it_may_not_be() {
        let all = callers(&[1, 1]);
        let (first, second) = (all.all[0].number.clone(), all.all[1].number.clone());
        let next = |barred: &[&E164]| {
            let caller = all.next_shown(|number| !barred.contains(&number), at(0), |_| true);
            caller.map(|caller| caller.number.clone())
        };
        assert_eq!(next(&[&first]), Some(second.clone()));
        assert_eq!(next(&[&second]), Some(first.clone()));
        assert_eq!(next(&[&first, &second]), Some(first));
    }

    #[test]
    fn a_call_goes_over_its_envs_route() {
        let id = TrunkId(Uuid::from_u128(7));
        for (env, its, expected) in [
            (Env::Test, None, Route::Sandbox),
            (Env::Test, Some(id), Route::Sandbox),
            (Env::Live, Some(id), Route::Trunk(id)),
            (Env::Live, None, Route::Nowhere),
        ] {
            assert_eq!(Route::of(env, its), expected);
        }
    }

    proptest! {
        /// Whatever is open when: two numbers of one trunk never differ by more than one turn.
        #[test]
        fn numbers_of_one_trunk_share_its_turns(
            routes in proptest::collection::vec(1u128..4, 1..8),
            opens in proptest::collection::vec(proptest::collection::vec(1u128..4, 0..3), 1..200),
        ) {
            let mut all = callers(&routes);
            let mut counts = vec![0i64; routes.len()];
            for open in opens {
                for place in turns(&mut all, 1, &open) {
                    counts[place] += 1;
                }
            }
            for (n, route) in routes.iter().enumerate() {
                for (other, _) in routes.iter().enumerate().filter(|(_, its)| *its == route) {
                    prop_assert!((counts[n] - counts[other]).abs() <= 1, "{counts:?} of {routes:?}");
                }
            }
        }
    }
}
