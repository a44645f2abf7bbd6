//! When an account has fallen, by its postings and by what was told: the rule of `credits.depleted`, followed once more.
use super::{
    facts::{Event, Facts},
    money::{Entry, Owner, credits, ledgers},
};
use std::collections::{HashMap, HashSet, VecDeque};

/// The least balance that is more than nothing.
const SOMETHING: i64 = 1;

/// From an event to the entry that brought money in again; `i64::MAX`: none has yet.
pub struct Spell {
    pub from: i64,
    pub until: i64,
}

#[derive(Default)]
struct Walk<'e, 'r> {
    found: Vec<String>,
    spells: Vec<Spell>,
    is_depleted: bool,
    /// What the transaction of the last entry has made of the balance, step by step, and where that transaction stands.
    balances: Vec<i64>,
    seq: i64,
    /// Entries that must be told of.
    owed: VecDeque<&'e Entry<'r>>,
}

impl<'e, 'r> Walk<'e, 'r> {
    fn entry(&mut self, owner: Owner<'_>, entry: &'e Entry<'r>) {
        let before = self.balances.last().copied().unwrap_or(0);
        if entry.whole.seq != self.seq {
            self.owe_nothing(owner);
            (self.seq, self.balances) = (entry.whole.seq, vec![before]);
        }
        let after = entry.whole.balance_after;
        self.balances.push(after);
        if after > before && after >= SOMETHING {
            self.is_depleted = false;
            for spell in self.spells.iter_mut().filter(|spell| spell.until == i64::MAX) {
                spell.until = entry.whole.seq;
            }
        } else if after < SOMETHING && !self.is_depleted {
            self.is_depleted = true;
            self.owed.push_back(entry);
        }
    }

    /// An event of a fall to nothing, or of something that costs more than all there is: of the latter no entry tells, so it
    /// must name the balance of its moment. `together`: it was told in the transaction of the last entry.
    fn event(&mut self, owner: Owner<'_>, event: &Event<'_>, together: bool) {
        let balance = self.balances.last().copied().unwrap_or(0);
        if self.owed.pop_front().is_none() {
            let alone = [balance];
            let steps: &[i64] = if together && !self.balances.is_empty() {
                &self.balances
            } else {
                &alone
            };
            let told = event.balance.unwrap_or(i64::MIN);
            let Some(at) = steps.iter().rposition(|step| *step == told) else {
                self.found.push(format!(
                    "credits.depleted {} of {owner:?} tells of {told}, where {balance} were left",
                    event.id
                ));
                return;
            };
            if self.is_depleted {
                let id = event.id;
                self.found
                    .push(format!("credits.depleted {id} of {owner:?}: it was told already"));
            }
            // What came in by the same commit has lifted it again.
            self.is_depleted = !steps[at..]
                .windows(2)
                .any(|pair| pair[1] > pair[0] && pair[1] >= SOMETHING);
        }
        if self.is_depleted {
            let (from, until) = (event.seq, i64::MAX);
            self.spells.push(Spell { from, until });
        }
    }

    fn owe_nothing(&mut self, owner: Owner<'_>) {
        for entry in self.owed.drain(..) {
            let (n, left) = (entry.n, entry.whole.balance_after);
            self.found.push(format!(
                "credits.depleted of {owner:?}: entry {n} left {left}, and nobody was told with it"
            ));
        }
    }
}

/// What is wrong with what was told of falls, and when each account was depleted.
pub fn falls<'r>(facts: &'r Facts<'_>) -> (Vec<String>, HashMap<Owner<'r>, Vec<Spell>>) {
    let (ledgers, _) = ledgers(facts);
    let told = credits(facts);
    // What a transaction's entries lead to is told right after them, whoever's they are.
    let told_at: HashSet<i64> = told.values().flatten().map(|event| event.seq).collect();
    let (mut found, mut spells) = (Vec::new(), HashMap::new());
    for account in &facts.accounts {
        let owner = (account.tenant, account.env);
        let entries = ledgers.get(&owner).map_or(&[][..], Vec::as_slice);
        let events = told.get(&(owner.0, owner.1, "credits.depleted"));
        let mut events = events.map_or(&[][..], Vec::as_slice).iter().peekable();
        let mut walk = Walk::default();
        let mut tell = |walk: &mut Walk<'_, '_>, before: i64| {
            while let Some(event) = events.next_if(|event| event.seq < before) {
                let together = (walk.seq + 1..event.seq).all(|seq| told_at.contains(&seq));
                walk.event(owner, event, together);
            }
        };
        for entry in entries {
            tell(&mut walk, entry.whole.seq);
            walk.entry(owner, entry);
        }
        tell(&mut walk, i64::MAX);
        walk.owe_nothing(owner);
        found.append(&mut walk.found);
        spells.insert(owner, walk.spells);
    }
    (found, spells)
}
